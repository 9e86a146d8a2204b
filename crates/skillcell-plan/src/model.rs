use serde::Serialize;
use skillcell_core::{
    AuditLevel, ByteSize, Control, CpuCount, Denial, Enforcement, EnvName, Isolation, SkillRef,
    Timeout,
};
use skillcell_manifest::{DenyRule, EgressRule, ParamAccess, SecretBinding};
use skillcell_policy::Origin;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything that a backend needs to know about what is allowed. No secret values.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub skill: SkillRef,
    pub isolation: Isolation,
    /// The caller lowered the isolation by `--trust`.
    pub trusted: bool,
    pub network: PlanNetwork,
    pub env: Vec<EnvGrant>,
    pub files: Vec<FileGrant>,
    pub limits: Limits,
    /// What is recorded of the call.
    pub audit: AuditLevel,
    /// One per control: what will enforce it on this host. Complete by construction.
    pub receipt: Vec<Enforcement>,
    /// What was asked for, what came of it, and who said so. For `explain`.
    pub grants: Vec<Grant>,
    /// Denials that are known before the skill starts.
    pub denials: Vec<Denial>,
}

/// Whom the call may talk to, and how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlanNetwork {
    /// Empty means no network at all. Ports are written out.
    pub egress: Vec<EgressRule>,
    /// The manifest's and the operator's: each wins over every rule.
    pub deny: Vec<DenyRule>,
    pub budget: Budget,
    /// Granted variables that the skill gets as placeholders only. One that is bound to no host
    /// goes nowhere, and is a placeholder all the same.
    pub secrets: Vec<SecretBinding>,
    /// The DNS server to ask; `None` is the host's.
    pub resolver: Option<SocketAddr>,
}

impl PlanNetwork {
    /// No way out at all.
    pub fn is_closed(&self) -> bool {
        self.egress.is_empty()
    }

    /// Whether connections are taken apart to see requests: for rules about them, or for secrets.
    pub fn inspects(&self) -> bool {
        !self.secrets.is_empty() || self.egress.iter().any(|rule| !rule.http.is_empty())
    }
}

/// How much network the call as a whole may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    pub bytes_out: ByteSize,
    pub bytes_in: ByteSize,
    pub connections: u64,
    pub requests: u64,
    /// Distinct hosts.
    pub hosts: u64,
}

/// A variable that will be inside, and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvGrant {
    pub name: EnvName,
    pub source: Source,
}

/// A host path inside the cell, at the same absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileGrant {
    pub path: PathBuf,
    pub access: FileAccess,
    pub kind: PathKind,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Mounted read-only.
    Read,
    /// Written to a staging copy, carried out when the call succeeds. A path that is granted for
    /// both reading and writing has this one grant.
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    File,
    Directory,
    /// Does not exist yet; only for writing, and its folder exists.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub timeout: Timeout,
    pub cpu: CpuCount,
    pub memory: ByteSize,
    pub processes: u32,
    pub output: ByteSize,
    pub scratch: ByteSize,
    pub scratch_inodes: u64,
}

/// Who a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Source {
    Default,
    Manifest,
    /// A flag of the caller, such as `--read`.
    Caller {
        flag: String,
    },
    /// A policy file and the section in it.
    Policy {
        file: String,
        section: String,
    },
    /// Skillcell's own ceiling, where no policy file says otherwise.
    BuiltIn,
}

impl Source {
    pub(crate) fn flag(flag: &str) -> Self {
        Source::Caller {
            flag: flag.to_owned(),
        }
    }
}

impl From<&Origin> for Source {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::BuiltIn => Source::BuiltIn,
            Origin::File { file, section } => Source::Policy {
                file: file.clone(),
                section: section.clone(),
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("the default"),
            Source::Manifest => f.write_str("the manifest"),
            Source::Caller { flag } => f.write_str(flag),
            Source::Policy { file, section } => write!(f, "{file} ({section})"),
            Source::BuiltIn => f.write_str("the built-in ceiling"),
        }
    }
}

/// One line of `explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// Such as `resources.memory` or `network.egress`.
    pub what: String,
    pub asked: String,
    pub effective: String,
    pub source: Source,
    /// Set when `effective` is less than `asked`.
    pub narrowed_by: Option<Source>,
}

/// What the caller allows for this one call, from flags. Paths are canonical already.
#[derive(Debug, Clone, Default)]
pub struct CallerGrants {
    /// Names given by `--env`.
    pub env: BTreeSet<EnvName>,
    pub read: Vec<HostPath>,
    pub write: Vec<HostPath>,
    pub timeout: Option<Timeout>,
    pub memory: Option<ByteSize>,
    pub isolation: Option<Isolation>,
    pub trust: bool,
    pub allow_degraded: BTreeSet<Control>,
    /// `--audit`.
    pub audit: Option<AuditLevel>,
    /// Values of params that the manifest names in `filesystem.params`.
    pub params: Vec<ParamPath>,
}

/// A path of the host, resolved: absolute, without symlinks (the last part of an absent path aside).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPath {
    pub path: PathBuf,
    pub kind: PathKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamPath {
    pub param: String,
    pub access: ParamAccess,
    pub host: HostPath,
}

/// A control and the mechanism that can hold it here, or why none can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirement {
    pub control: Control,
    pub mechanism: Result<String, skillcell_core::Missing>,
}
