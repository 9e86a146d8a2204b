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
    /// No rule names this host.
    HostNotAllowed,
    /// A rule names the host, but not this port of it.
    PortNotAllowed,
    /// A `deny` entry covers the destination.
    DeniedByRule,
    /// A private, local, metadata, translated or otherwise special address that no CIDR rule names.
    AddressNotPublic,
    /// An allowed name that has no address, or whose resolver didn't answer.
    ResolveFailed,
    /// A DNS question for something else than an address.
    DnsTypeNotAllowed,
    /// More names were asked for than a call may ask for.
    DnsBudgetExceeded,
    /// A TLS handshake without a server name, to a host that is allowed by name.
    TlsNoServerName,
    /// The server name of the TLS handshake is not the host of the connection.
    TlsServerNameMismatch,
    /// An encrypted ClientHello: it would hide whom the connection is for.
    TlsEncryptedHello,
    /// A TLS handshake that can't be read.
    TlsMalformed,
    /// `Host`, `:authority` or an absolute target is not the host of the connection.
    HttpHostMismatch,
    /// HTTP that two readers could read in two ways.
    HttpMalformed,
    /// The host is allowed, but not this method and path.
    HttpRequestNotAllowed,
    /// Neither TLS nor HTTP, on a port that is for these.
    ProtocolNotAllowed,
    /// A secret, or its placeholder, on its way to a host that it is not bound to.
    SecretLeak,
    /// The call's budget of bytes, connections, requests or hosts is used up.
    NetworkBudgetExceeded,
    /// The upstream's certificate or handshake didn't hold.
    UpstreamTls,
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
    /// The record of the call can't be written.
    AuditUnavailable,
    /// No daemon answers where one was asked for.
    DaemonUnavailable,
    /// The daemon has as many calls as it takes, or is about to end.
    Busy,
    /// Something that this caller may not ask of a daemon.
    CallerNotAllowed,
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
            Reason::HostNotAllowed => "host_not_allowed",
            Reason::PortNotAllowed => "port_not_allowed",
            Reason::DeniedByRule => "denied_by_rule",
            Reason::AddressNotPublic => "address_not_public",
            Reason::ResolveFailed => "resolve_failed",
            Reason::DnsTypeNotAllowed => "dns_type_not_allowed",
            Reason::DnsBudgetExceeded => "dns_budget_exceeded",
            Reason::TlsNoServerName => "tls_no_server_name",
            Reason::TlsServerNameMismatch => "tls_server_name_mismatch",
            Reason::TlsEncryptedHello => "tls_encrypted_hello",
            Reason::TlsMalformed => "tls_malformed",
            Reason::HttpHostMismatch => "http_host_mismatch",
            Reason::HttpMalformed => "http_malformed",
            Reason::HttpRequestNotAllowed => "http_request_not_allowed",
            Reason::ProtocolNotAllowed => "protocol_not_allowed",
            Reason::SecretLeak => "secret_leak",
            Reason::NetworkBudgetExceeded => "network_budget_exceeded",
            Reason::UpstreamTls => "upstream_tls",
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
            Reason::AuditUnavailable => "audit_unavailable",
            Reason::DaemonUnavailable => "daemon_unavailable",
            Reason::Busy => "busy",
            Reason::CallerNotAllowed => "caller_not_allowed",
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
