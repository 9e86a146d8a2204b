# /// script
# requires-python = ">=3.9"
# dependencies = ["humanize==4.12.3"]
# ///
import json
import sys

import humanize

print(json.dumps({size: humanize.naturalsize(int(size), binary=True) for size in sys.argv[1:]}))
