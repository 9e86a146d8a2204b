//! What is allowed for one skill, each value with the file and section that set it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{AuditLevel, ByteSize, CpuCount, EnvName, HostPattern, Isolation, Timeout};
use skillcell_manifest::{DenyRule, EgressRule, SecretPlace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Who set a ceiling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Origin {
    /// Skillcell's own ceiling, where no policy file says otherwise.
    BuiltIn,
    File {
        file: String,
        /// Such as `defaults`, `tiers.external` or `categories."finance/*"`.
        section: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("the built-in ceiling"),
            Origin::File { file, section } => write!(f, "{file} ({section})"),
        }
    }
}

/// A ceiling (for isolation a floor) and who set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bounded<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Bounded<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Bounded { value, origin }
    }

    /// Takes `narrower` of the present value and another, and its origin if that changed anything.
    pub(crate) fn narrow(&mut self, other: &T, origin: &Origin, narrower: impl FnOnce(&T, &T) -> T)
    where
        T: PartialEq,
    {
        let value = narrower(&self.value, other);
        if value != self.value {
            *self = Bounded {
                value,
                origin: origin.clone(),
            };
        }
    }
}

/// Whether `--trust` may be used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    Deny,
    Allow,
}

/// The most that a skill can get, whatever it or its caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ceiling {
    /// The sections that apply, in the order in which they narrowed. Empty without a policy.
    pub sections: Vec<Origin>,
    /// The weakest isolation that is permitted without `--trust`.
    pub isolation: Bounded<Isolation>,
    pub trust: Bounded<Trust>,
    pub egress: Bounded<Vec<EgressRule>>,
    /// Of all sections together: more entries only narrow.
    pub deny: Vec<Bounded<DenyRule>>,
    pub budget: BudgetCeilings,
    /// Variables that are only ever given as placeholders, and who may get their values.
    pub secrets: BTreeMap<EnvName, Bounded<SecretBound>>,
    /// The DNS server to ask, instead of the host's. The last file that names one decides, which is
    /// the system's: a caller's file must not lead around it.
    pub resolver: Option<Bounded<SocketAddr>>,
    /// Variables that may come from the caller's environment without `--env`.
    pub env: Bounded<BTreeSet<EnvName>>,
    /// Roots under which host paths in params may be read without a flag.
    pub read: Bounded<Vec<PathBuf>>,
    /// The same for writing. Who may write may read; `read` contains these too where they stand in
    /// one section.
    pub write: Bounded<Vec<PathBuf>>,
    /// Where `--read` may point; `None` is anywhere.
    pub caller_read: Option<Bounded<Vec<PathBuf>>>,
    /// Where `--write` may point; `None` is anywhere.
    pub caller_write: Option<Bounded<Vec<PathBuf>>>,
    pub limits: LimitCeilings,
    /// The least that is recorded.
    pub audit: Bounded<AuditLevel>,
    pub log: LogTerms,
    /// Whether dependencies may be built from source.
    pub source_builds: Bounded<bool>,
    /// Whether a skill may be loaded once for many calls.
    pub warm: Bounded<bool>,
    /// Whom an install may reach besides the caller's own package index.
    pub index_hosts: Bounded<Vec<EgressRule>>,
}

/// How the log is divided and kept. Of several files the last one that says something decides, which
/// is the system's. What is missing is the log's own default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LogTerms {
    pub segment: Option<ByteSize>,
    pub segment_days: Option<u32>,
    pub keep: Option<ByteSize>,
    pub keep_days: Option<u32>,
}

impl LogTerms {
    pub(crate) fn overrule(&mut self, later: LogTerms) {
        self.segment = later.segment.or(self.segment);
        self.segment_days = later.segment_days.or(self.segment_days);
        self.keep = later.keep.or(self.keep);
        self.keep_days = later.keep_days.or(self.keep_days);
    }
}

/// The most network that one call may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetCeilings {
    pub bytes_out: Bounded<ByteSize>,
    pub bytes_in: Bounded<ByteSize>,
    pub connections: Bounded<u64>,
    pub requests: Bounded<u64>,
    pub hosts: Bounded<u64>,
}

/// Where the value of a variable may go at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretBound {
    pub hosts: Vec<HostPattern>,
    pub places: Vec<SecretPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitCeilings {
    pub timeout: Bounded<Timeout>,
    pub cpu: Bounded<CpuCount>,
    pub memory: Bounded<ByteSize>,
    pub processes: Bounded<u32>,
    pub output: Bounded<ByteSize>,
    pub scratch: Bounded<ByteSize>,
}

impl Ceiling {
    /// Without any policy file the person at the keyboard is the operator: their flags count, and
    /// nothing comes without a flag.
    pub fn built_in() -> Self {
        let mut ceiling = Ceiling::strictest(&Origin::BuiltIn);
        ceiling.trust.value = Trust::Allow;
        ceiling.audit.value = AuditLevel::Decisions;
        ceiling
    }

    /// What a file allows that says nothing but its version.
    pub(crate) fn strictest(origin: &Origin) -> Self {
        let by = || origin.clone();
        Ceiling {
            sections: Vec::new(),
            isolation: Bounded::new(Isolation::DEFAULT, by()),
            trust: Bounded::new(Trust::Deny, by()),
            egress: Bounded::new(Vec::new(), by()),
            deny: Vec::new(),
            budget: BudgetCeilings::built_in(),
            secrets: BTreeMap::new(),
            resolver: None,
            env: Bounded::new(BTreeSet::new(), by()),
            read: Bounded::new(Vec::new(), by()),
            write: Bounded::new(Vec::new(), by()),
            caller_read: None,
            caller_write: None,
            limits: LimitCeilings::built_in(),
            audit: Bounded::new(AuditLevel::DEFAULT, by()),
            log: LogTerms::default(),
            source_builds: Bounded::new(false, by()),
            warm: Bounded::new(true, by()),
            index_hosts: Bounded::new(Vec::new(), by()),
        }
    }
}

impl BudgetCeilings {
    /// Far above what a skill needs, but finite.
    fn built_in() -> Self {
        fn by<T>(value: T) -> Bounded<T> {
            Bounded::new(value, Origin::BuiltIn)
        }
        BudgetCeilings {
            bytes_out: by(ByteSize::mib(16 << 10)),
            bytes_in: by(ByteSize::mib(64 << 10)),
            connections: by(100_000),
            requests: by(1_000_000),
            hosts: by(4096),
        }
    }
}

impl LimitCeilings {
    /// Generous, but finite: a typo in a manifest can't ask for a week or for all of the memory.
    fn built_in() -> Self {
        fn by<T>(value: T) -> Bounded<T> {
            Bounded::new(value, Origin::BuiltIn)
        }
        LimitCeilings {
            timeout: by(Timeout::secs(600)),
            cpu: by(CpuCount::whole(1024)),
            memory: by(ByteSize::mib(8 << 10)),
            processes: by(1024),
            output: by(ByteSize::mib(64)),
            scratch: by(ByteSize::mib(4 << 10)),
        }
    }
}
