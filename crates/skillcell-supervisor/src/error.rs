use skillcell_backend::BackendError;
use skillcell_bundle::BundleError;
use skillcell_core::{Denial, ErrorBody, Reason, Status};
use skillcell_deps::{Cause, DepsError};
use skillcell_egress::{AuthorityError, BrokerError};
use skillcell_plan::Refusal;
use skillcell_policy::PolicyError;
use std::path::PathBuf;

/// Why a call ended before the skill ran.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("{path}: can't be read: {source}")]
    PolicyFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("params are not JSON: {message} ({from}:{line}:{column})")]
    ParamsNotJson {
        from: String,
        line: usize,
        column: usize,
        message: String,
    },
    #[error("params: {0}")]
    ParamsShape(String),
    #[error("params don't match the skill's schema: {0}")]
    ParamsSchema(String),
    #[error("the skill's `parameters` are not a JSON Schema: {0}")]
    SchemaInvalid(String),
    #[error("{path}: can't be read: {source}")]
    ParamsFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{flag} {path}: {source}")]
    FlagPath {
        flag: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the skill needs {} that {} not given: {}", if .names.len() == 1 { "a variable" } else { "variables" }, if .names.len() == 1 { "was" } else { "were" }, .names.join(", "))]
    MissingEnv { names: Vec<String> },
    #[error("--env {name}: the variable is not set, or its value is not UTF-8")]
    EnvUnset { name: String },
    #[error("{program} is not on this host, and the skill needs it")]
    InterpreterMissing { program: String, hint: String },
    #[error("{0} is an Agent Skill: say which script to run")]
    NoEntry(String, Vec<String>),
    #[error(
        "arguments after `--` go to scripts and commands; `{0}` is a skill class, which takes params"
    )]
    ArgsForClass(String),
    #[error(transparent)]
    Deps(#[from] skillcell_deps::DepsError),
    #[error("{path}: {what}")]
    DepsFolder { path: PathBuf, what: String },
    #[error("the audit log can't be written: {0}")]
    Audit(#[from] skillcell_audit::AuditError),
    #[error(transparent)]
    Record(#[from] skillcell_audit::RecordFailed),
    #[error("the egress broker is not available: {}", with_cause(.0))]
    Broker(#[from] skillcell_egress::BrokerError),
    #[error("the cell handed over no sockets for its network")]
    NoDoor,
    #[error("the kernel gave no random numbers: {0}")]
    Random(std::io::Error),
    #[error("the supervisor lost the cell: {0}")]
    Watch(std::io::Error),
    #[error("what the skill wrote can't be carried out to {path}: {source}")]
    Collect {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// An error and what is behind it, in one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl CallError {
    pub fn status(&self) -> Status {
        match self {
            CallError::Refusal(refusal) => refusal.status(),
            CallError::Backend(_)
            | CallError::Audit(_)
            | CallError::Record(_)
            | CallError::Broker(_)
            | CallError::NoDoor
            | CallError::Random(_) => Status::Refused,
            // What the skill asks for can't be had; everything else is this host's fault.
            CallError::Deps(
                DepsError::Requirement {
                    cause: Cause::Denied,
                    ..
                }
                | DepsError::Install {
                    cause: Cause::Denied,
                    ..
                },
            ) => Status::Denied,
            CallError::Deps(DepsError::Requirement { .. } | DepsError::Install { .. }) => {
                Status::InvalidInput
            }
            CallError::Deps(_) => Status::Refused,
            CallError::Collect { source, .. }
                if source.kind() == std::io::ErrorKind::FileTooLarge =>
            {
                Status::LimitExceeded
            }
            CallError::Watch(_) | CallError::Collect { .. } => Status::InternalError,
            _ => Status::InvalidInput,
        }
    }

    pub fn reason(&self) -> Reason {
        match self {
            CallError::Bundle(error) => error.reason(),
            CallError::Policy(_) | CallError::PolicyFile { .. } => Reason::InvalidPolicy,
            CallError::Refusal(refusal) => refusal.reason(),
            CallError::Audit(_) | CallError::Record(_) => Reason::AuditUnavailable,
            CallError::Backend(_)
            | CallError::Broker(_)
            | CallError::NoDoor
            | CallError::Random(_) => Reason::ControlUnavailable,
            CallError::ParamsNotJson { .. }
            | CallError::ParamsShape(_)
            | CallError::ParamsSchema(_)
            | CallError::ParamsFile { .. } => Reason::InvalidParams,
            CallError::SchemaInvalid(_) => Reason::InvalidManifest,
            CallError::MissingEnv { .. } | CallError::EnvUnset { .. } => Reason::MissingEnv,
            CallError::InterpreterMissing { .. } => Reason::InterpreterMissing,
            CallError::Deps(_) => Reason::DependencyInstall,
            CallError::FlagPath { .. }
            | CallError::NoEntry(..)
            | CallError::ArgsForClass(_)
            | CallError::DepsFolder { .. } => Reason::InvalidUsage,
            CallError::Collect { source, .. }
                if source.kind() == std::io::ErrorKind::FileTooLarge =>
            {
                Reason::ScratchExceeded
            }
            CallError::Watch(_) | CallError::Collect { .. } => Reason::Internal,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            CallError::Bundle(error) => error.hint(),
            CallError::Policy(error) => error.hint().map(str::to_owned),
            CallError::Refusal(refusal) => refusal.hint(),
            CallError::Backend(error) => error.hint(),
            CallError::Broker(BrokerError::Resolver(_)) => Some(
                "mend /etc/resolv.conf, or name a server in the operator's policy: `network: {resolver: ADDRESS}`"
                    .into(),
            ),
            CallError::Broker(BrokerError::Authority(AuthorityError::NoRoots)) => Some(
                "install the root certificates (apt-get install ca-certificates), or set SSL_CERT_FILE".into(),
            ),
            CallError::MissingEnv { names } => Some(format!(
                "pass {}",
                names
                    .iter()
                    .map(|n| format!("--env {n}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            )),
            CallError::EnvUnset { name } => {
                Some(format!("export it, or give a value: --env {name}=VALUE"))
            }
            CallError::InterpreterMissing { hint, .. } => Some(hint.clone()),
            CallError::NoEntry(_, scripts) if scripts.is_empty() => {
                Some("its folder has no scripts/ to run".into())
            }
            CallError::NoEntry(_, scripts) => {
                Some(format!("add --entry with one of: {}", scripts.join(", ")))
            }
            CallError::ParamsNotJson { .. } => {
                Some("quote JSON for the shell: --params '{\"name\": \"value\"}'".into())
            }
            CallError::ParamsSchema(_) => {
                Some("`skillcell explain SKILL` shows what the skill takes".into())
            }
            CallError::Deps(error) => error.hint(),
            CallError::ArgsForClass(_) => Some("use --params with a JSON object".into()),
            _ => None,
        }
    }

    pub fn denials(&self) -> Vec<Denial> {
        match self {
            CallError::Refusal(refusal) => refusal.denials().to_vec(),
            CallError::Deps(error) => error.denials().to_vec(),
            _ => Vec::new(),
        }
    }

    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.reason(),
            message: self.to_string(),
            hint: self.hint(),
        }
    }
}
