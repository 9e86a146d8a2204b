//! What can be in the log: one kind of event per variant. Values of variables, params and results
//! never are.

use crate::Text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{
    Adapter, AuditLevel, Denial, DenialKind, Digest, EgressEvent, Enforcement, Isolation, Reason,
    SkillRef, Status, Usage,
};
use std::collections::BTreeMap;

/// Something that happened. In a line of the log it is `"event": kind, "data": {…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum Event {
    // The call.
    CallStarted(Box<CallStarted>),
    CallEnded(Box<CallEnded>),
    /// A call that ended before its record was opened: nothing of the skill ran, and this is all.
    CallRefused(Box<CallRefused>),
    /// A limit ended the call, or was met by it.
    LimitReached {
        reason: Reason,
    },
    /// The cell did not allow something. Each one is in the log before the skill is told.
    Denied(Denied),

    // Processes.
    /// A program is about to be executed; `pid` is who asks.
    ProcessStarted {
        program: Text,
        /// The first arguments.
        argv: Vec<Text>,
        /// How many there are.
        argc: u64,
    },
    /// A process asks to end, with this code. One that is killed doesn't ask.
    ProcessEnded {
        code: i32,
    },

    // Files.
    FileOpened(FileOpened),
    FileChanged {
        change: Change,
        path: Text,
        /// Where a rename or link leads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Text>,
    },

    // The network.
    /// `connect` on a socket, as the skill asked for it.
    Connect {
        address: Text,
    },
    /// A DNS question at the door.
    NameAsked(EgressEvent),
    /// A connection at the door is let through or denied, before anything is sent.
    ConnectionDecided(ConnectionDecided),
    /// A request on an inspected connection.
    HttpRequest(HttpRequest),
    /// A connection at the door is over.
    ConnectionEnded(EgressEvent),
    /// More of these than are recorded for one call.
    EgressDropped {
        count: u64,
    },

    // System calls.
    Syscall(Syscall),

    // The log itself.
    /// The first line of each segment.
    SegmentOpened {
        segment: u64,
        format: u32,
    },
    /// Bytes of a line that its writer did not finish, and nobody was told of, were cut off.
    Recovered {
        torn_bytes: u64,
    },
    /// The oldest segments were removed; what is left begins after this line of the chain.
    Pruned(Anchor),
}

impl Event {
    /// All kinds, as they stand in lines.
    pub const KINDS: [&'static str; 19] = [
        "call_started",
        "call_ended",
        "call_refused",
        "limit_reached",
        "denied",
        "process_started",
        "process_ended",
        "file_opened",
        "file_changed",
        "connect",
        "name_asked",
        "connection_decided",
        "http_request",
        "connection_ended",
        "egress_dropped",
        "syscall",
        "segment_opened",
        "recovered",
        "pruned",
    ];

    /// Whether it is the last event of its call.
    pub fn ends_call(&self) -> bool {
        matches!(self, Event::CallEnded(_) | Event::CallRefused(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallStarted {
    pub skill: SkillRef,
    pub isolation: Isolation,
    pub trusted: bool,
    pub plan: Digest,
    pub level: AuditLevel,
    /// On whose behalf, as the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text>,
    /// The receipt: what holds which control.
    pub enforcement: Vec<Enforcement>,
    /// The run that loaded the skill, where this one was resumed from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallEnded {
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub denials: Vec<Denial>,
    pub usage: Usage,
    pub summary: Summary,
}

/// The message of the error is not in it: it may quote params.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRefused {
    pub skill: SkillRef,
    pub status: Status,
    pub reason: Reason,
    pub denials: Vec<Denial>,
    /// On whose behalf, as the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text>,
}

/// One call in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// System calls that the level looks at, by class. At `full` these are all.
    pub syscalls: BTreeMap<String, u64>,
    /// Programs executed.
    pub programs: u64,
    /// Processes and threads that were seen.
    pub tasks: u64,
    pub files_read: u64,
    pub files_written: u64,
    pub hosts: u64,
    pub connections: u64,
    pub denials: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    pub kind: DenialKind,
    pub target: Text,
    pub reason: Reason,
    /// For system calls: the call with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<Syscall>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileOpened {
    /// Absolute in the cell; links are not resolved.
    pub path: Text,
    pub access: Access,
    pub flags: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
    ReadWrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Truncate,
    Remove,
    Rename,
    MakeFolder,
    Link,
    Symlink,
    MakeNode,
    Attributes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionDecided {
    pub connection: u64,
    pub adapter: Adapter,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    pub host: String,
    pub port: u16,
    pub method: Text,
    /// Without the query, which may carry secrets.
    pub path: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Reason>,
}

/// One system call, before the kernel does it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Syscall {
    pub name: String,
    /// Decoded where the record knows how: numbers, flags, paths, addresses. Never contents.
    pub args: Vec<Text>,
    /// The error that the supervisor gave instead of the kernel. What the kernel answered is not
    /// known to the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

/// A place in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// The last segment that is gone.
    pub segment: u64,
    pub seq: u64,
    pub hash: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed() {
        let schema = schemars::schema_for!(Event);
        let variants = schema.get("oneOf").and_then(|v| v.as_array()).cloned();
        let kinds: Vec<String> = variants
            .unwrap_or_default()
            .iter()
            .filter_map(|v| Some(v.pointer("/properties/event/const")?.as_str()?.to_owned()))
            .collect();
        assert_eq!(kinds, Event::KINDS, "{schema:?}");
    }
}
