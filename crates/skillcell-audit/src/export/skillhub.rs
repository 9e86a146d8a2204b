//! Rows of a skill registry's `audit_log` table, as skillhub has it: who did what to which skill. Only
//! decisions are for that table; files, programs and system calls stay in the record.

use super::call::{Refused, target};
use super::{Entry, VERSION, rfc3339, word};
use crate::Event;
use serde_json::{Map, Value, json};
use skillcell_core::DenialKind;

/// Every action that a row can have.
pub const ACTIONS: [&str; 10] = [
    "SKILL_RUN_STARTED",
    "SKILL_RUN",
    "SKILL_RUN_REFUSED",
    "SKILL_EGRESS_ALLOWED",
    "SKILL_EGRESS_DENIED",
    "SKILL_FILE_DENIED",
    "SKILL_SYSCALL_DENIED",
    "SKILL_PROCESS_DENIED",
    "SKILL_ENV_DENIED",
    "SKILL_LIMIT_EXCEEDED",
];

/// The table's `VARCHAR` limits, in characters.
const MAX_ACTOR: usize = 128;
const MAX_REQUEST: usize = 64;

/// The rows of one event: none for most.
pub fn rows(entry: &Entry<'_>) -> Vec<Value> {
    if entry.record.run_id.is_none() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    match &entry.record.event {
        Event::CallStarted(started) => rows.push(row(
            entry,
            "SKILL_RUN_STARTED",
            json!({
                "isolation": started.isolation,
                "trusted": started.trusted,
                "plan": started.plan,
                "level": started.level,
            }),
        )),
        Event::CallEnded(ended) => rows.push(row(
            entry,
            "SKILL_RUN",
            json!({
                "status": ended.status,
                "reason": ended.reason,
                "usage": ended.usage,
                "summary": ended.summary,
            }),
        )),
        Event::CallRefused(call) => rows.push(row(
            entry,
            "SKILL_RUN_REFUSED",
            json!({"status": call.status, "reason": call.reason}),
        )),
        Event::LimitReached { reason } => rows.push(row(
            entry,
            "SKILL_LIMIT_EXCEEDED",
            json!({"reason": reason}),
        )),
        Event::ConnectionDecided(to) if to.denied.is_none() => rows.push(row(
            entry,
            "SKILL_EGRESS_ALLOWED",
            json!({
                "target": target(&to.host, to.port),
                "adapter": word(&to.adapter),
                "rule": to.rule,
            }),
        )),
        _ => {}
    }
    // What only the end of a call tells goes before the row of that end.
    let denials = entry.refused.iter().map(|refused| denial(entry, refused));
    rows.splice(0..0, denials);
    rows
}

fn denial(entry: &Entry<'_>, refused: &Refused) -> Value {
    let action = match refused.kind {
        DenialKind::Network => "SKILL_EGRESS_DENIED",
        DenialKind::Filesystem => "SKILL_FILE_DENIED",
        DenialKind::Syscall => "SKILL_SYSCALL_DENIED",
        DenialKind::Process => "SKILL_PROCESS_DENIED",
        DenialKind::Env => "SKILL_ENV_DENIED",
    };
    row(
        entry,
        action,
        json!({
            "target": refused.target,
            "reason": refused.reason,
            "count": refused.count,
            "hint": refused.hint,
        }),
    )
}

fn row(entry: &Entry<'_>, action: &str, detail: Value) -> Value {
    let (record, call) = (entry.record, entry.call);
    let mut all = Map::new();
    all.insert("run_id".to_owned(), json!(record.run_id));
    all.insert("n".to_owned(), json!(record.n));
    all.insert("seq".to_owned(), json!(record.seq));
    all.insert("hash".to_owned(), json!(record.hash));
    all.insert("skill".to_owned(), json!(call.skill));
    if let Value::Object(detail) = detail {
        all.extend(detail.into_iter().filter(|(_, value)| !value.is_null()));
    }
    // A call without a request of its own is still one thing: its rows share its id.
    let request = call
        .request_id
        .clone()
        .or_else(|| record.run_id.as_ref().map(ToString::to_string));
    let mut row = json!({
        "actor_user_id": call.actor.as_deref().map(|a| cut(a, MAX_ACTOR)),
        "action": action,
        "target_type": "SKILL",
        // A number in the registry, which the record doesn't know; `detail_json.skill` names it.
        "target_id": null,
        "request_id": request.as_deref().map(|r| cut(r, MAX_REQUEST)),
        "client_ip": null,
        "user_agent": format!("skillcell/{VERSION}"),
        "detail_json": Value::Object(all),
        "created_at": rfc3339(record.unix_us),
    });
    without_nul(&mut row);
    row
}

fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

/// PostgreSQL has no NUL, neither in text nor in `jsonb`.
fn without_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\\x00"),
        Value::Array(items) => items.iter_mut().for_each(without_nul),
        Value::Object(fields) => fields.values_mut().for_each(without_nul),
        _ => {}
    }
}
