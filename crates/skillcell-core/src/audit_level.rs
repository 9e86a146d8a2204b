use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of a call is recorded, least first: each level has everything of the ones before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AuditLevel {
    /// Denials, grants that were used, beginning and end.
    Decisions,
    /// Also program starts, files opened for writing or outside of the skill's own folders, names,
    /// connections, requests and denied system calls. The default.
    Security,
    /// Every system call of every process and thread.
    Full,
}

impl AuditLevel {
    pub const DEFAULT: AuditLevel = AuditLevel::Security;

    pub fn as_str(self) -> &'static str {
        match self {
            AuditLevel::Decisions => "decisions",
            AuditLevel::Security => "security",
            AuditLevel::Full => "full",
        }
    }
}

impl fmt::Display for AuditLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for AuditLevel {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        [
            AuditLevel::Decisions,
            AuditLevel::Security,
            AuditLevel::Full,
        ]
        .into_iter()
        .find(|level| level.as_str() == s)
        .ok_or_else(|| format!("unknown audit level `{s}`: use decisions, security or full"))
    }
}
