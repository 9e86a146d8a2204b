//! Objects that several classes have.

use crate::export::{Call, Entry};
use serde_json::{Value, json};

/// Sets a field of an object, where there is something to say.
pub(super) fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object
        && !value.is_null()
    {
        fields.insert(name.to_owned(), value);
    }
}

/// The cell: what happens in it doesn't happen to the host.
pub(super) fn cell(entry: &Entry<'_>) -> Value {
    let mut device = json!({"type_id": 99, "type": "Cell", "name": "skillcell"});
    if let Some(run) = &entry.record.run_id {
        put(&mut device, "uid", json!(run));
    }
    device
}

/// On whose behalf, as the caller says.
pub(super) fn user(call: &Call) -> Value {
    match &call.actor {
        Some(name) => json!({"name": name, "type_id": 0, "type": "Unknown"}),
        None => Value::Null,
    }
}

pub(super) fn app(call: &Call) -> Value {
    let skill = &call.skill;
    let mut app = json!({
        "name": skill.id.as_deref().unwrap_or("unknown"),
        "vendor_name": "unknown",
    });
    put(&mut app, "version", json!(skill.version));
    put(&mut app, "uid", json!(skill.digest));
    app
}

/// The process that an event is of, in numbers of the host.
pub(super) fn process(entry: &Entry<'_>) -> Value {
    let record = entry.record;
    let mut process = json!({});
    put(&mut process, "pid", json!(record.pid));
    put(&mut process, "tid", json!(record.tid));
    // One of `pid` and `uid` must be there.
    if let (Some(run), Some(pid)) = (&record.run_id, record.pid) {
        put(&mut process, "uid", json!(format!("{run}:{pid}")));
    } else {
        put(&mut process, "uid", json!(record.run_id));
    }
    process
}

/// Who did it: a process of the skill, for a user.
pub(super) fn actor(entry: &Entry<'_>) -> Value {
    let mut actor = json!({"app_name": entry.call.skill.id.as_deref().unwrap_or("skill")});
    put(&mut actor, "app_uid", json!(entry.call.skill.digest));
    put(&mut actor, "user", user(entry.call));
    if entry.record.pid.is_some() {
        let mut process = process(entry);
        if let Some(ppid) = entry.record.ppid {
            put(&mut process, "parent_process", json!({"pid": ppid}));
        }
        put(&mut actor, "process", process);
    }
    actor
}

/// The last part of a path; never empty.
pub(super) fn name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => "/",
    }
}

/// `type_id`: 0 unknown, 1 regular, 2 folder, 7 symbolic link, 99 other.
pub(super) fn file(path: &str, type_id: u32) -> Value {
    let mut file = json!({"name": name(path), "path": path, "type_id": type_id});
    let trimmed = path.trim_end_matches('/');
    if let Some((parent, _)) = trimmed.rsplit_once('/') {
        let parent = if parent.is_empty() { "/" } else { parent };
        put(&mut file, "parent_folder", json!(parent));
    }
    file
}
