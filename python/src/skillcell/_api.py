"""`run` and `arun`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._conclude import conclude
from ._process import ProcessTransport
from ._request import Env, Names, Options, Path, Paths, Request, make_request
from ._transport import Envelope, Transport
from .result import Result

if TYPE_CHECKING:
    from .runtime import Runtime

transport: Transport = ProcessTransport()


def run(
    skill: Path,
    params: Mapping[str, Any] | None = None,
    *,
    timeout: float | str | None = 30,
    env: Env = (),
    read: Paths = (),
    write: Paths = (),
    memory: int | str | None = None,
    policy: Paths = (),
    isolation: str | None = None,
    trust: bool = False,
    allow_degraded: Names = (),
    strict_denials: bool = False,
    audit: str | None = None,
    actor: str | None = None,
    request_id: str | None = None,
    python: Path | None = None,
    deps: Path | None = None,
    entry: str | None = None,
    args: Names = (),
    show_output: bool = False,
    runtime: Runtime | None = None,
) -> Result:
    """Runs a skill in a cell of its own and waits for its result.

    Raises a `SkillcellError` where there is none, and warns with a `DenialWarning` where there is
    one in spite of denials. An exception in between, such as KeyboardInterrupt, ends the call.

    Args:
        skill: A skill's folder, or its id (`category/name`).
        params: A dict of JSON values.
        timeout: Wall-clock limit in seconds, or as text such as "2m"; None leaves it to the
            manifest and to policy.
        env: Variables that the skill declares: a dict with values, or names of your own.
        read: Files or folders that the skill may read.
        write: Files or folders that it may write; they appear when the call succeeds.
        memory: Limit in bytes, or as text such as "256MiB".
        policy: Operator policies, before the user's and the system's.
        isolation: "process" or "sandbox"; never lower than policy asks for, but with `trust`.
        trust: Run with less isolation than policy asks for.
        allow_degraded: Controls that need not be enforced here.
        strict_denials: Raise `Denied` where a call succeeded in spite of denials.
        audit: How much to record: "decisions", "security" or "full".
        actor: On whose behalf the call is made, for the record.
        request_id: Your own id of this request, for the record.
        python: The Python interpreter for the cell.
        deps: A ready virtualenv or folder of packages; nothing is installed then.
        entry: The script of an Agent Skill to run, by its path in the bundle.
        args: Arguments for the script.
        show_output: Have what the skill printed in the result too.
        runtime: Have this runtime's daemon make the call, instead of a process for it.
    """
    options = Options(
        timeout=timeout,
        env=env,
        read=read,
        write=write,
        memory=memory,
        policy=policy,
        isolation=isolation,
        trust=trust,
        allow_degraded=allow_degraded,
        strict_denials=strict_denials,
        audit=audit,
        actor=actor,
        request_id=request_id,
        python=python,
        deps=deps,
        entry=entry,
        args=args,
        show_output=show_output,
        runtime=runtime,
    )
    return run_with(skill, params, options)


async def arun(
    skill: Path,
    params: Mapping[str, Any] | None = None,
    *,
    timeout: float | str | None = 30,
    env: Env = (),
    read: Paths = (),
    write: Paths = (),
    memory: int | str | None = None,
    policy: Paths = (),
    isolation: str | None = None,
    trust: bool = False,
    allow_degraded: Names = (),
    strict_denials: bool = False,
    audit: str | None = None,
    actor: str | None = None,
    request_id: str | None = None,
    python: Path | None = None,
    deps: Path | None = None,
    entry: str | None = None,
    args: Names = (),
    show_output: bool = False,
    runtime: Runtime | None = None,
) -> Result:
    """As `run`, without blocking the event loop. Cancelling the task ends the call."""
    options = Options(
        timeout=timeout,
        env=env,
        read=read,
        write=write,
        memory=memory,
        policy=policy,
        isolation=isolation,
        trust=trust,
        allow_degraded=allow_degraded,
        strict_denials=strict_denials,
        audit=audit,
        actor=actor,
        request_id=request_id,
        python=python,
        deps=deps,
        entry=entry,
        args=args,
        show_output=show_output,
        runtime=runtime,
    )
    return await arun_with(skill, params, options)


def run_with(skill: Path, params: Mapping[str, Any] | None, options: Options) -> Result:
    """`run` for options that were put together elsewhere in this package."""
    request = make_request(skill, params, options)
    runtime = options.runtime
    return conclude(request, runtime.call(request) if runtime else transport.run(request), 4)


async def arun_with(skill: Path, params: Mapping[str, Any] | None, options: Options) -> Result:
    """`arun` for options that were put together elsewhere in this package."""
    request = make_request(skill, params, options)
    caller = options.runtime.acall if options.runtime else transport.arun
    return conclude(request, await caller(request), 4)


def explain_with(skill: str, params: Mapping[str, Any] | None, options: Options) -> Envelope:
    """What the call would be."""
    request: Request = make_request(skill, params, options)
    return (options.runtime or transport).explain(request)
