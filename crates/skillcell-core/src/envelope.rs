use crate::{Denial, Digest, Enforcement, Reason, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a call ended. The exit code follows from this alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    SkillError,
    InvalidInput,
    InvalidResult,
    Denied,
    LimitExceeded,
    Refused,
    InternalError,
}

impl Status {
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Ok => 0,
            Status::SkillError | Status::InvalidResult => 1,
            Status::InvalidInput => 2,
            Status::Denied => 3,
            Status::LimitExceeded => 4,
            Status::Refused => 5,
            Status::InternalError => 70,
        }
    }
}

/// The whole outcome of one call. `R` is the result as JSON.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Envelope<R> {
    pub run_id: RunId,
    pub skill: SkillRef,
    pub status: Status,
    pub result: Option<R>,
    pub error: Option<ErrorBody>,
    pub denials: Vec<Denial>,
    pub enforcement: Vec<Enforcement>,
    pub usage: Usage,
    pub audit: AuditRef,
    /// Captured output of the skill, present with `--show-output` or when the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Captured>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    pub stdout: String,
    pub stderr: String,
}

/// Which skill was called. Fields are null when the call failed before they were known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillRef {
    pub id: Option<String>,
    pub version: Option<String>,
    pub digest: Option<Digest>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    pub code: Reason,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub wall_ms: u64,
    pub cpu_ms: u64,
    pub peak_memory_bytes: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditRef {
    pub log: Option<String>,
    pub events: u64,
    pub head: Option<String>,
}
