use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something was denied, refused or failed. Closed on purpose: log, envelope and message share
/// these codes, and tools match on them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    // Denials.
    /// The skill has no network, or none to this destination.
    NetworkNotAllowed,
    /// A loopback address where nothing in the cell listens: the host's loopback is not reachable.
    HostLoopbackUnreachable,
    /// The path is mounted read-only or was not granted for writing.
    PathNotWritable,
    /// A host path in a param, outside the roots that operator and caller allow.
    PathNotGranted,
    /// A file that the skill wrote beside its granted outputs; it was discarded.
    OutputNotGranted,
    /// A file type that is never carried out of a cell (symlink, device, socket).
    OutputNotRegular,
    SyscallNotAllowed,
    /// A variable that was offered but that the manifest doesn't declare.
    EnvNotDeclared,
    /// A variable that the manifest asks for and that nobody granted.
    EnvNotGranted,
    /// The call succeeded, but `--strict-denials` counts what was denied.
    StrictDenials,
    /// `--isolation` below what policy asks for, without `--trust`.
    IsolationTooLow,
    // Limits.
    TimeoutExceeded,
    MemoryExceeded,
    ProcessesExceeded,
    ScratchExceeded,
    OutputExceeded,
    // Refusals.
    ControlUnavailable,
    BackendUnavailable,
    // The skill.
    SkillException,
    SkillReportedError,
    SkillExit,
    SkillSignal,
    SkillNoResult,
    SkillLoad,
    ResultNotJson,
    ResultTooDeep,
    // Input.
    SkillNotFound,
    InvalidManifest,
    InvalidPolicy,
    InvalidParams,
    InvalidUsage,
    MissingEnv,
    InterpreterMissing,
    DependencyInstall,
    Internal,
}

impl Reason {
    /// The code as it stands in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Reason::NetworkNotAllowed => "network_not_allowed",
            Reason::HostLoopbackUnreachable => "host_loopback_unreachable",
            Reason::PathNotWritable => "path_not_writable",
            Reason::PathNotGranted => "path_not_granted",
            Reason::OutputNotGranted => "output_not_granted",
            Reason::OutputNotRegular => "output_not_regular",
            Reason::SyscallNotAllowed => "syscall_not_allowed",
            Reason::EnvNotDeclared => "env_not_declared",
            Reason::EnvNotGranted => "env_not_granted",
            Reason::StrictDenials => "strict_denials",
            Reason::IsolationTooLow => "isolation_too_low",
            Reason::TimeoutExceeded => "timeout_exceeded",
            Reason::MemoryExceeded => "memory_exceeded",
            Reason::ProcessesExceeded => "processes_exceeded",
            Reason::ScratchExceeded => "scratch_exceeded",
            Reason::OutputExceeded => "output_exceeded",
            Reason::ControlUnavailable => "control_unavailable",
            Reason::BackendUnavailable => "backend_unavailable",
            Reason::SkillException => "skill_exception",
            Reason::SkillReportedError => "skill_reported_error",
            Reason::SkillExit => "skill_exit",
            Reason::SkillSignal => "skill_signal",
            Reason::SkillNoResult => "skill_no_result",
            Reason::SkillLoad => "skill_load",
            Reason::ResultNotJson => "result_not_json",
            Reason::ResultTooDeep => "result_too_deep",
            Reason::SkillNotFound => "skill_not_found",
            Reason::InvalidManifest => "invalid_manifest",
            Reason::InvalidPolicy => "invalid_policy",
            Reason::InvalidParams => "invalid_params",
            Reason::InvalidUsage => "invalid_usage",
            Reason::MissingEnv => "missing_env",
            Reason::InterpreterMissing => "interpreter_missing",
            Reason::DependencyInstall => "dependency_install",
            Reason::Internal => "internal",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
