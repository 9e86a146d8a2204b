"""Run AI-agent skills that somebody else wrote, each call in its own cell.

>>> skillcell.run("examples/skills/hello", {"name": "world"}).value
{'greeting': 'Hello, world!'}
"""

from ._api import arun, run
from ._events import Event
from ._warnings import BundleWarning, DenialWarning
from .errors import (
    BinaryNotFound,
    Busy,
    DaemonUnavailable,
    Denied,
    EgressDenied,
    InternalError,
    InvalidInput,
    InvalidParams,
    InvalidResult,
    LimitExceeded,
    MemoryExceeded,
    Refused,
    SkillcellError,
    SkillFailed,
    SkillNotFound,
    TimeoutExceeded,
)
from .loader import SkillLoader
from .result import Audit, Denial, Enforcement, Output, Result, SkillRef, Usage
from .runtime import Runtime

__all__ = [
    "Audit",
    "BinaryNotFound",
    "BundleWarning",
    "Busy",
    "DaemonUnavailable",
    "Denial",
    "DenialWarning",
    "Denied",
    "EgressDenied",
    "Enforcement",
    "Event",
    "InternalError",
    "InvalidInput",
    "InvalidParams",
    "InvalidResult",
    "LimitExceeded",
    "MemoryExceeded",
    "Output",
    "Refused",
    "Result",
    "Runtime",
    "SkillFailed",
    "SkillLoader",
    "SkillNotFound",
    "SkillRef",
    "SkillcellError",
    "TimeoutExceeded",
    "Usage",
    "arun",
    "run",
]
