//! Events of the Open Cybersecurity Schema Framework, for SIEMs. An event of the record is one
//! activity; what was not allowed is a Detection Finding besides. Everything that the schema has no
//! place for is under `unmapped`.

mod event;
mod network;
mod parts;

use super::{Entry, Refused};
use crate::{Access, Change, Event};
use event::{Class, Made, Outcome, Severity, made};
use parts::{app, cell, file, process, user};
use serde_json::{Value, json};
use skillcell_core::{Reason, Status};

/// The version of the schema.
pub const SCHEMA: &str = "1.5.0";

/// The events that one line of the record becomes.
pub fn events(entry: &Entry<'_>) -> Vec<Value> {
    let mut events = vec![activity(entry).into_value(entry)];
    for (index, refused) in entry.refused.iter().enumerate() {
        events.push(denial(entry, refused).into_finding(entry, index));
    }
    if let Event::LimitReached { reason } = &entry.record.event {
        events.push(limit(*reason).into_finding(entry, entry.refused.len()));
    }
    events
}

fn activity(entry: &Entry<'_>) -> Made {
    let actor = parts::actor(entry);
    match &entry.record.event {
        Event::CallStarted(_)
        | Event::CallEnded(_)
        | Event::CallRefused(_)
        | Event::LimitReached { .. } => call(entry),
        Event::Denied(denied) => denied_activity(entry, denied),
        Event::ProcessStarted {
            program,
            argv,
            argc,
        } => {
            let words: Vec<&str> = argv.iter().map(crate::Text::as_str).collect();
            let mut started = process(entry);
            parts::put(&mut started, "name", json!(parts::name(program.as_str())));
            parts::put(&mut started, "file", file(program.as_str(), 1));
            parts::put(&mut started, "cmd_line", json!(words.join(" ")));
            let mut parent = json!({"pid": entry.record.ppid});
            if entry.record.ppid.is_none() {
                parent = Value::Null;
            }
            parts::put(&mut started, "parent_process", parent);
            made(Class::PROCESS, (1, "Launch"))
                .with("process", started)
                .with("actor", actor)
                .message(format!("{program} is started with {argc} arguments"))
        }
        Event::ProcessEnded { code } => made(Class::PROCESS, (2, "Terminate"))
            .with("process", process(entry))
            .with("actor", actor)
            .with("exit_code", json!(code))
            .message(format!("a process ends with code {code}")),
        Event::FileOpened(opened) => {
            let activity = match opened.access {
                Access::Read => (2, "Read"),
                Access::Write | Access::ReadWrite => (3, "Update"),
            };
            made(Class::FILE, activity)
                .with("file", file(opened.path.as_str(), 0))
                .with("actor", actor)
                .message(format!("{} is opened: {}", opened.path, opened.flags))
        }
        Event::FileChanged { change, path, to } => {
            let (activity, kind) = match change {
                Change::Truncate => ((3, "Update"), 1),
                Change::Remove => ((4, "Delete"), 0),
                Change::Rename => ((5, "Rename"), 0),
                Change::MakeFolder => ((1, "Create"), 2),
                Change::Link => ((1, "Create"), 0),
                Change::Symlink => ((1, "Create"), 7),
                Change::MakeNode => ((1, "Create"), 99),
                Change::Attributes => ((6, "Set Attributes"), 0),
            };
            let result = match (change, to) {
                (Change::Rename, Some(to)) => file(to.as_str(), 0),
                _ => Value::Null,
            };
            made(Class::FILE, activity)
                .with("file", file(path.as_str(), kind))
                .with("file_result", result)
                .with("actor", actor)
                .message(format!("{}: {path}", super::word(change)))
        }
        Event::Connect { address } => network::connect(entry, address.as_str()),
        Event::NameAsked(name) => network::name(entry, name),
        Event::ConnectionDecided(to) => network::decided(entry, to),
        Event::ConnectionEnded(ended) => network::ended(entry, ended),
        Event::HttpRequest(request) => network::request(entry, request),
        Event::EgressDropped { count } => made(Class::BASE, (99, "Other"))
            .severity(Severity::Low)
            .message(format!(
                "{count} more names and connections than are recorded for one call"
            )),
        Event::Syscall(syscall) => system_call(actor, &syscall.name, syscall.errno),
        Event::SegmentOpened { segment, .. } => {
            own((5, "Rotate")).message(format!("segment {segment} of the log was begun"))
        }
        Event::Pruned(anchor) => own((2, "Delete")).message(format!(
            "segments up to {} of the log were removed",
            anchor.segment
        )),
        Event::Recovered { torn_bytes } => own((99, "Other")).severity(Severity::Low).message(
            format!("{torn_bytes} bytes of a line that its writer did not finish were cut off"),
        ),
    }
}

fn own(activity: (u32, &'static str)) -> Made {
    made(Class::EVENT_LOG, activity)
        .with("log_name", json!(event::LOG_NAME))
        .with("log_provider", json!("skillcell"))
        .with("actor", json!({"app_name": "skillcell"}))
        .with(
            "device",
            json!({"type_id": 0, "type": "Unknown", "name": "skillcell"}),
        )
}

fn system_call(actor: Value, name: &str, errno: Option<i32>) -> Made {
    made(Class::KERNEL, (4, "Invoke"))
        .with(
            "kernel",
            json!({"name": name, "type_id": 2, "type": "System Call", "system_call": name}),
        )
        .with("actor", actor)
        .outcome(match errno {
            None => Outcome::Unknown,
            Some(_) => Outcome::Failure,
        })
        .message(format!("system call {name}"))
}

/// The activity that was tried; that it was not allowed is the finding beside it.
fn denied_activity(entry: &Entry<'_>, denied: &crate::Denied) -> Made {
    use skillcell_core::DenialKind::{Env, Filesystem, Network, Process, Syscall};
    let (actor, target) = (parts::actor(entry), denied.target.as_str());
    let tried = match denied.kind {
        Filesystem => made(Class::FILE, (99, "Other"))
            .with("file", file(target, 0))
            .with("actor", actor),
        Syscall => {
            let name = denied.syscall.as_ref().map_or(target, |s| s.name.as_str());
            system_call(actor, name, None)
        }
        Process => made(Class::PROCESS, (1, "Launch"))
            .with("process", process(entry))
            .with("actor", actor),
        Network => network::connect(entry, target),
        Env => made(Class::BASE, (99, "Other")),
    };
    tried
        .denied(Some(denied.reason))
        .message(format!("{} {target}: {}", denied.kind, denied.reason))
}

fn call(entry: &Entry<'_>) -> Made {
    let of_call = |activity| {
        let actor = match user(entry.call) {
            Value::Null => json!({"app_name": "skillcell"}),
            user => json!({"app_name": "skillcell", "user": user}),
        };
        made(Class::LIFECYCLE, activity)
            .with("app", app(entry.call))
            .with("actor", actor)
            .with("device", cell(entry))
    };
    let name = entry.call.skill.id.as_deref().unwrap_or("a skill");
    match &entry.record.event {
        Event::CallEnded(ended) => {
            let end = entry.record.unix_us / 1000;
            let outcome = match ended.status {
                Status::Ok => Outcome::Success,
                _ => Outcome::Failure,
            };
            let status = super::word(&ended.status);
            of_call((4, "Stop"))
                .outcome(outcome)
                .severity(severity(ended.status))
                .with("status_code", json!(status))
                .with("status_detail", json!(ended.reason))
                .with("start_time", json!(end.saturating_sub(ended.usage.wall_ms)))
                .with("end_time", json!(end))
                .with("duration", json!(ended.usage.wall_ms))
                .message(format!("a call of {name} ended: {status}"))
        }
        Event::CallRefused(refused) => {
            let status = super::word(&refused.status);
            of_call((3, "Start"))
                .outcome(Outcome::Failure)
                .severity(severity(refused.status))
                .with("status_code", json!(status))
                .with("status_detail", json!(refused.reason))
                .message(format!("a call of {name} did not begin: {status}"))
        }
        Event::LimitReached { reason } => of_call((99, "Other"))
            .outcome(Outcome::Failure)
            .severity(Severity::Medium)
            .with("status_detail", json!(reason))
            .message(format!("a call of {name} met a limit: {reason}")),
        _ => of_call((3, "Start"))
            .outcome(Outcome::Success)
            .message(format!("a call of {name} begins")),
    }
}

fn severity(status: Status) -> Severity {
    match status {
        Status::Ok => Severity::Informational,
        Status::Denied | Status::LimitExceeded => Severity::Medium,
        _ => Severity::Low,
    }
}

fn denial(entry: &Entry<'_>, refused: &Refused) -> Made {
    let severity = match refused.reason {
        Reason::SecretLeak => Severity::High,
        _ => Severity::Medium,
    };
    let remediation = match &refused.hint {
        Some(hint) if !hint.is_empty() => json!({"desc": hint}),
        _ => Value::Null,
    };
    let title = format!("{} denied: {}", refused.kind, refused.target);
    made(Class::FINDING, (1, "Create"))
        .severity(severity)
        .denied(Some(refused.reason))
        .with("count", json!(refused.count))
        .with("remediation", remediation)
        .with(
            "resources",
            json!([{"name": refused.target, "type": refused.kind.to_string()}]),
        )
        .with("device", cell(entry))
        .finding(title, refused.kind.to_string(), refused.reason)
}

fn limit(reason: Reason) -> Made {
    made(Class::FINDING, (1, "Create"))
        .severity(Severity::Medium)
        .denied(Some(reason))
        .finding(
            format!("a limit was met: {reason}"),
            "limit".to_owned(),
            reason,
        )
}
