"""What a call gives: the envelope of `skillcell run --json`, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._text import printable


@dataclass(frozen=True)
class SkillRef:
    """Which skill it was; None where the call ended before that was known."""

    id: str | None
    version: str | None
    digest: str | None


@dataclass(frozen=True)
class Denial:
    """Something that the skill tried and the cell did not allow.

    `target` is the skill's own words: escape it before you print it. `str()` of a denial does.
    """

    kind: str
    target: str
    reason: str
    count: int
    hint: str

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return printable(f"{self.kind} {self.target}{times}: {self.reason}; {self.hint}")


@dataclass(frozen=True)
class Enforcement:
    """A line of the receipt: which control was held, and by what."""

    control: str
    mechanism: str
    status: str


@dataclass(frozen=True)
class Usage:
    """What the call took."""

    wall_ms: int
    cpu_ms: int
    peak_memory_bytes: int
    bytes_out: int
    bytes_in: int


@dataclass(frozen=True)
class Audit:
    """Where the record of the call is."""

    log: str | None
    events: int
    head: str | None


@dataclass(frozen=True)
class Output:
    """What the skill printed."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class Result:
    """A call that succeeded. Look at `denials`: an answer may be wrong for lack of them."""

    value: Any
    run_id: str
    skill: SkillRef
    denials: tuple[Denial, ...]
    enforcement: tuple[Enforcement, ...]
    usage: Usage
    audit: Audit
    output: Output | None
    envelope: Mapping[str, Any] = field(repr=False)

    @property
    def stdout(self) -> str | None:
        """What the skill printed, where it was asked for."""
        return self.output.stdout if self.output else None

    @property
    def stderr(self) -> str | None:
        """What the skill printed on standard error, where it was asked for."""
        return self.output.stderr if self.output else None


def result_of(envelope: Mapping[str, Any]) -> Result:
    """The result in an envelope of status `ok`."""
    usage, audit = envelope["usage"], envelope["audit"]
    return Result(
        value=envelope["result"],
        run_id=envelope["run_id"],
        skill=skill_of(envelope),
        denials=denials_of(envelope),
        enforcement=tuple(
            Enforcement(e["control"], e["mechanism"], e["status"]) for e in envelope["enforcement"]
        ),
        usage=Usage(
            usage["wall_ms"],
            usage["cpu_ms"],
            usage["peak_memory_bytes"],
            usage["bytes_out"],
            usage["bytes_in"],
        ),
        audit=Audit(audit["log"], audit["events"], audit["head"]),
        output=output_of(envelope),
        envelope=envelope,
    )


def skill_of(envelope: Mapping[str, Any]) -> SkillRef:
    skill = envelope.get("skill") or {}
    return SkillRef(skill.get("id"), skill.get("version"), skill.get("digest"))


def denials_of(envelope: Mapping[str, Any]) -> tuple[Denial, ...]:
    return tuple(
        Denial(d["kind"], d["target"], d["reason"], d["count"], d["hint"])
        for d in envelope.get("denials") or ()
    )


def output_of(envelope: Mapping[str, Any]) -> Output | None:
    output = envelope.get("output")
    return Output(output["stdout"], output["stderr"]) if output else None
