"""Everything that can be raised, in one hierarchy, one class per status of the envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._text import printable
from .result import Denial, Output, SkillRef, denials_of, output_of, skill_of

MOST_SHOWN = 10


class SkillcellError(Exception):
    """A call that gave no result. `envelope` is None where it ended before there was one."""

    def __init__(
        self, message: str, *, hint: str | None = None, envelope: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.envelope = envelope

    def __str__(self) -> str:
        lines = [printable(self.message)]
        lines += [f"denied: {denial}" for denial in self.denials[:MOST_SHOWN]]
        if len(self.denials) > MOST_SHOWN:
            lines.append(f"denied: {len(self.denials) - MOST_SHOWN} more, in `denials`")
        if self.hint:
            lines.append(f"hint: {printable(self.hint)}{_about_flags(self.hint)}")
        return "\n".join(lines)

    @property
    def code(self) -> str | None:
        """The reason, of the closed list in the documentation."""
        error = (self.envelope or {}).get("error") or {}
        code = error.get("code")
        return code if isinstance(code, str) else None

    @property
    def value(self) -> Any:
        """The skill's result, where it gave one and the call failed all the same."""
        return (self.envelope or {}).get("result")

    @property
    def run_id(self) -> str | None:
        run_id = (self.envelope or {}).get("run_id")
        return run_id if isinstance(run_id, str) else None

    @property
    def skill(self) -> SkillRef:
        return skill_of(self.envelope or {})

    @property
    def denials(self) -> tuple[Denial, ...]:
        return denials_of(self.envelope or {})

    @property
    def output(self) -> Output | None:
        """What the skill printed before it failed."""
        return output_of(self.envelope or {})


class SkillFailed(SkillcellError):
    """The skill raised, exited, gave nothing, couldn't be loaded, or said that it failed."""


class InvalidInput(SkillcellError):
    """The call was wrong: arguments, manifest, policy, a missing variable or interpreter."""


class InvalidParams(InvalidInput, ValueError):
    """The params aren't JSON, or don't fit the skill's schema. Nothing was started."""


class SkillNotFound(InvalidInput, FileNotFoundError):
    """There is no such skill."""


class InvalidResult(SkillcellError):
    """What the skill gave isn't JSON, or can't be read as it."""


class Denied(SkillcellError):
    """The skill failed after something was denied, or succeeded with `strict_denials`."""


class EgressDenied(Denied):
    """One of the denials that made it fail is of the network."""


class LimitExceeded(SkillcellError):
    """The call hit a limit, which `limit` names."""

    @property
    def limit(self) -> str:
        """`timeout`, `memory`, `processes`, `scratch` or `output`."""
        return (self.code or "").removesuffix("_exceeded")


class TimeoutExceeded(LimitExceeded):
    """The skill did not finish in time."""


class MemoryExceeded(LimitExceeded):
    """The skill needed more memory than it may have."""


class Refused(SkillcellError):
    """What policy asks for can't be enforced on this host, so nothing was run."""


class InternalError(SkillcellError):
    """Skillcell's own fault, or somebody ended the call."""


class DaemonUnavailable(SkillcellError):
    """No daemon answers there, or it is somebody else's. Nothing was run."""


class Busy(SkillcellError):
    """The daemon has as many calls as it takes, or is about to end. Nothing was run."""

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class BinaryNotFound(SkillcellError):
    """There is no `skillcell` binary to start."""


def error_of(subject: str, envelope: Mapping[str, Any]) -> SkillcellError:
    """The error in an envelope of any status but `ok`."""
    error = envelope.get("error") or {}
    message = error.get("message") or f"ended as {envelope.get('status')}"
    kind = _class_of(envelope, error.get("code"))
    return kind(f"{subject}: {message}", hint=error.get("hint"), envelope=envelope)


def _class_of(envelope: Mapping[str, Any], code: object) -> type[SkillcellError]:
    by_code: dict[object, type[SkillcellError]] = {
        "invalid_params": InvalidParams,
        "skill_not_found": SkillNotFound,
        "timeout_exceeded": TimeoutExceeded,
        "memory_exceeded": MemoryExceeded,
    }
    by_status: dict[object, type[SkillcellError]] = {
        "skill_error": SkillFailed,
        "invalid_input": InvalidInput,
        "invalid_result": InvalidResult,
        "denied": _denied(envelope, code),
        "limit_exceeded": LimitExceeded,
        "refused": Refused,
        "internal_error": InternalError,
    }
    general = by_status.get(envelope.get("status"), InternalError)
    special = by_code.get(code, general)
    return special if issubclass(special, general) else general


def _denied(envelope: Mapping[str, Any], code: object) -> type[Denied]:
    """Where the error is itself a denial, that one counts; else all that the skill was denied."""
    denials = denials_of(envelope)
    named = [denial for denial in denials if denial.reason == code]
    return EgressDenied if any(d.kind == "network" for d in named or denials) else Denied


def _about_flags(hint: str) -> str:
    if "--" not in hint:
        return ""
    return " (a flag such as --strict-denials is the keyword strict_denials here)"
