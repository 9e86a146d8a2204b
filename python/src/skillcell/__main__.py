"""`python -m skillcell` is the `skillcell` command."""

import os
import sys

from ._binary import find_binary
from .errors import BinaryNotFound


def main() -> None:
    try:
        binary = find_binary()
    except BinaryNotFound as error:
        sys.exit(f"error: {error}")
    os.execv(binary, ["skillcell", *sys.argv[1:]])


if __name__ == "__main__":
    main()
