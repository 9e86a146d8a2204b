//! One line of the log, as readers get it.

use crate::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::RunId;

/// An event with its place in time, in the chain and in the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The number of the line in the whole log, from 1.
    pub seq: u64,
    /// Which call; events of the log itself have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The number of the event in its call, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Wall clock, microseconds since 1970.
    pub unix_us: u64,
    /// Monotonic clock of the host, in microseconds.
    pub mono_us: u64,
    /// The process in the cell that did it, numbered as the host sees it; with its thread and its
    /// parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppid: Option<u32>,
    #[serde(flatten)]
    pub event: Event,
    /// SHA-256 over the hash of the line before (32 bytes) and this line up to here.
    pub hash: String,
}

/// Who did it, in the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub pid: u32,
    pub tid: u32,
    pub ppid: u32,
}
