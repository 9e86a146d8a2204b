//! What all classes share: ids that follow from one another, metadata, status.

use super::{SCHEMA, parts};
use crate::export::{Entry, VERSION};
use serde_json::{Map, Value, json};
use skillcell_core::Reason;

pub(super) const LOG_NAME: &str = "skillcell audit";

#[derive(Clone, Copy)]
pub(super) struct Class {
    uid: u32,
    name: &'static str,
    category: (u32, &'static str),
}

const SYSTEM: (u32, &str) = (1, "System Activity");
const NETWORK: (u32, &str) = (4, "Network Activity");

impl Class {
    pub(super) const BASE: Class = Class::new(0, "Base Event", (0, "Uncategorized"));
    pub(super) const FILE: Class = Class::new(1001, "File System Activity", SYSTEM);
    pub(super) const KERNEL: Class = Class::new(1003, "Kernel Activity", SYSTEM);
    pub(super) const PROCESS: Class = Class::new(1007, "Process Activity", SYSTEM);
    pub(super) const EVENT_LOG: Class = Class::new(1008, "Event Log Activity", SYSTEM);
    pub(super) const FINDING: Class = Class::new(2004, "Detection Finding", (2, "Findings"));
    pub(super) const NETWORK: Class = Class::new(4001, "Network Activity", NETWORK);
    pub(super) const HTTP: Class = Class::new(4002, "HTTP Activity", NETWORK);
    pub(super) const DNS: Class = Class::new(4003, "DNS Activity", NETWORK);
    pub(super) const LIFECYCLE: Class =
        Class::new(6002, "Application Lifecycle", (6, "Application Activity"));

    const fn new(uid: u32, name: &'static str, category: (u32, &'static str)) -> Class {
        Class {
            uid,
            name,
            category,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Severity {
    Informational,
    Low,
    Medium,
    High,
}

impl Severity {
    fn parts(self) -> (u32, &'static str) {
        match self {
            Severity::Informational => (1, "Informational"),
            Severity::Low => (2, "Low"),
            Severity::Medium => (3, "Medium"),
            Severity::High => (4, "High"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Unknown,
    Success,
    Failure,
}

/// An event that is being made.
pub(super) struct Made {
    class: Class,
    activity: (u32, &'static str),
    severity: Severity,
    outcome: Outcome,
    message: String,
    /// Whether a control decided it, and how.
    decision: Option<Option<Reason>>,
    fields: Map<String, Value>,
}

pub(super) fn made(class: Class, activity: (u32, &'static str)) -> Made {
    Made {
        class,
        activity,
        severity: Severity::Informational,
        // A call is seen before the kernel does it.
        outcome: Outcome::Unknown,
        message: String::new(),
        decision: None,
        fields: Map::new(),
    }
}

impl Made {
    pub(super) fn severity(mut self, severity: Severity) -> Made {
        self.severity = severity;
        self
    }

    pub(super) fn outcome(mut self, outcome: Outcome) -> Made {
        self.outcome = outcome;
        self
    }

    pub(super) fn message(mut self, message: String) -> Made {
        self.message = message;
        self
    }

    /// Decided by policy: allowed, or denied with a reason.
    pub(super) fn denied(mut self, reason: Option<Reason>) -> Made {
        self.decision = Some(reason);
        match reason {
            Some(reason) => {
                self.outcome = Outcome::Failure;
                self.with("status_detail", json!(reason))
            }
            None => self.outcome(Outcome::Success),
        }
    }

    /// A field, where there is something to say.
    pub(super) fn with(mut self, name: &str, value: Value) -> Made {
        if !value.is_null() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    pub(super) fn finding(self, title: String, kind: String, reason: Reason) -> Made {
        let code = reason.to_string();
        let info = json!({
            "title": title,
            "types": [kind],
            "analytic": {"name": code, "uid": code, "type_id": 1, "type": "Rule"},
            "data_sources": ["skillcell"],
        });
        self.message(title).with("finding_info", info)
    }

    pub(super) fn into_value(self, entry: &Entry<'_>) -> Value {
        let uid = match (&entry.record.run_id, entry.record.n) {
            (Some(run), Some(n)) => format!("{run}:{n}"),
            _ => format!("log:{}", entry.record.seq),
        };
        self.build(entry, uid)
    }

    /// One of the findings of an event, which is also an activity: it has a name of its own.
    pub(super) fn into_finding(mut self, entry: &Entry<'_>, index: usize) -> Value {
        let run = entry.record.run_id.as_ref().map(ToString::to_string);
        let n = entry.record.n.unwrap_or_default();
        let uid = format!("{}:{n}:{index}", run.unwrap_or_default());
        if let Some(info) = self.fields.get_mut("finding_info") {
            parts::put(info, "uid", json!(uid));
            let ms = json!(entry.record.unix_us / 1000);
            parts::put(info, "created_time", ms);
        }
        self.build(entry, uid)
    }

    fn build(self, entry: &Entry<'_>, uid: String) -> Value {
        let record = entry.record;
        let (kind, data) = entry.parts();
        let (activity_id, activity) = self.activity;
        let (severity_id, severity) = self.severity.parts();
        let (status_id, status) = if self.class.uid == Class::FINDING.uid {
            (1, "New")
        } else {
            match self.outcome {
                Outcome::Unknown => (0, "Unknown"),
                Outcome::Success => (1, "Success"),
                Outcome::Failure => (2, "Failure"),
            }
        };
        let mut profiles = Vec::new();
        if matches!(self.class.category.0, 4 | 6) {
            profiles.push("host");
        }
        if self.decision.is_some() {
            profiles.push("security_control");
        }
        let mut metadata = json!({
            "version": SCHEMA,
            "product": {"name": "Skillcell", "vendor_name": "Skillcell", "version": VERSION},
            "profiles": profiles,
            "uid": uid,
            "sequence": record.seq,
            "event_code": kind,
            "log_name": LOG_NAME,
        });
        if let Some(run) = &record.run_id {
            parts::put(&mut metadata, "correlation_uid", json!(run));
        }
        if let Some(level) = entry.call.level {
            parts::put(&mut metadata, "log_level", json!(level.as_str()));
        }
        let mut event = json!({
            "class_uid": self.class.uid,
            "class_name": self.class.name,
            "category_uid": self.class.category.0,
            "category_name": self.class.category.1,
            "activity_id": activity_id,
            "activity_name": activity,
            "type_uid": self.class.uid * 100 + activity_id,
            "type_name": format!("{}: {activity}", self.class.name),
            "severity_id": severity_id,
            "severity": severity,
            "status_id": status_id,
            "status": status,
            "time": record.unix_us / 1000,
            "message": self.message,
            "metadata": metadata,
        });
        if let Some(reason) = self.decision {
            let (action, disposition) = match reason {
                None => ((1, "Allowed"), (1, "Allowed")),
                Some(_) => ((2, "Denied"), (2, "Blocked")),
            };
            parts::put(&mut event, "action_id", json!(action.0));
            parts::put(&mut event, "action", json!(action.1));
            parts::put(&mut event, "disposition_id", json!(disposition.0));
            parts::put(&mut event, "disposition", json!(disposition.1));
        }
        if self.class.category.0 == SYSTEM.0 && !self.fields.contains_key("device") {
            parts::put(&mut event, "device", parts::cell(entry));
        }
        if let Value::Object(all) = &mut event {
            all.extend(self.fields);
        }
        let unmapped = json!({
            "seq": record.seq,
            "hash": record.hash,
            "mono_us": record.mono_us,
            "request_id": entry.call.request_id,
            "isolation": entry.call.isolation,
            "skill": entry.call.skill,
            "event": kind,
            "data": data,
        });
        parts::put(&mut event, "unmapped", unmapped);
        event
    }
}
