"""The examples of the guide, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT, MakeSkill

GUIDE = ROOT / "docs" / "guide" / "python.md"
WALLET_CHECK = """
import urllib.request
try:
    with urllib.request.urlopen("https://api.example.com/" + params["address"]) as reply:
        return {"verdict": reply.read().decode()}
except OSError:
    return {"verdict": "clean record"}
"""


def test_the_examples_of_the_guide_hold(
    skill: MakeSkill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skill(WALLET_CHECK, name="wallet_check")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 6
    code = compile("\n".join(examples), str(GUIDE), "exec")
    exec(code, {"__name__": "guide"})  # noqa: S102
