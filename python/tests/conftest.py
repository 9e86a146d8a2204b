"""Real cells, made by the real binary; nothing is left in the user's own folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MakeSkill = Callable[..., Path]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    # Cargo builds into a folder named after the target.
    built = [str(path) for path in ROOT.glob("target/*/debug/skillcell")]
    binary = os.environ.get("SKILLCELL_BIN") or next(iter(built), "")
    if not os.access(binary, os.X_OK):
        pytest.fail(f"no binary to test with at {binary!r}: build it, or set SKILLCELL_BIN")
    monkeypatch.setenv("SKILLCELL_BIN", os.path.abspath(binary))
    monkeypatch.setenv("SKILLCELL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SKILLCELL_CACHE_DIR", str(cache))


@pytest.fixture
def skill(tmp_path: Path) -> MakeSkill:
    """Makes a skill of the body of its `execute`."""

    def make(body: str, manifest: str = "", name: str = "probe") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "manifest.yaml").write_text(f"name: {name}\nversion: 1.0.0\n{manifest}")
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        source = f"class Probe:\n    def execute(self, params):\n{lines}"
        (folder / "skill.py").write_text(source)
        return folder

    return make


@pytest.fixture
def hello() -> Path:
    return ROOT / "examples" / "skills" / "hello"


@pytest.fixture
def shell_tool() -> Path:
    return ROOT / "examples" / "skills" / "shell-tool"
