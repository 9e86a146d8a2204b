//! Comma-separated values after RFC 4180, for spreadsheets. Words in the record are chosen by hostile
//! code, and a spreadsheet executes cells that begin like a formula: those get an apostrophe.

use super::call::{request_line, target};
use super::{Entry, rfc3339};
use crate::Event;

/// The columns, always these and in this order.
pub const COLUMNS: [&str; 17] = [
    "time",
    "seq",
    "run_id",
    "n",
    "event",
    "skill",
    "skill_version",
    "actor",
    "request_id",
    "pid",
    "tid",
    "ppid",
    "target",
    "outcome",
    "reason",
    "data",
    "hash",
];

/// The first line.
pub fn header() -> String {
    line(COLUMNS.iter().map(|name| (*name).to_owned()))
}

/// One event as a line, with its end.
pub fn row(entry: &Entry<'_>) -> String {
    let (record, call) = (entry.record, entry.call);
    let (kind, data) = entry.parts();
    let (target, outcome, reason) = gist(&record.event);
    let number = |number: Option<u32>| number.map(|n| n.to_string()).unwrap_or_default();
    line([
        rfc3339(record.unix_us),
        record.seq.to_string(),
        record
            .run_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        record.n.map(|n| n.to_string()).unwrap_or_default(),
        kind,
        call.skill.id.clone().unwrap_or_default(),
        call.skill.version.clone().unwrap_or_default(),
        call.actor.clone().unwrap_or_default(),
        call.request_id.clone().unwrap_or_default(),
        number(record.pid),
        number(record.tid),
        number(record.ppid),
        target,
        outcome,
        reason,
        data.to_string(),
        record.hash.clone(),
    ])
}

/// What it was about, how it went, and why.
fn gist(event: &Event) -> (String, String, String) {
    let decided = |target: String, denied: Option<skillcell_core::Reason>| match denied {
        Some(reason) => (target, "denied".to_owned(), reason.to_string()),
        None => (target, "allowed".to_owned(), String::new()),
    };
    let only = |target: String| (target, String::new(), String::new());
    match event {
        Event::CallStarted(started) => only(started.isolation.to_string()),
        Event::CallEnded(ended) => (
            String::new(),
            super::word(&ended.status),
            ended.reason.map(|r| r.to_string()).unwrap_or_default(),
        ),
        Event::CallRefused(call) => (
            String::new(),
            super::word(&call.status),
            call.reason.to_string(),
        ),
        Event::LimitReached { reason } => (String::new(), "limit".to_owned(), reason.to_string()),
        Event::Denied(denied) => decided(denied.target.to_string(), Some(denied.reason)),
        Event::ProcessStarted { program, .. } => only(program.to_string()),
        Event::ProcessEnded { code } => (String::new(), code.to_string(), String::new()),
        Event::FileOpened(opened) => only(opened.path.to_string()),
        Event::FileChanged { path, .. } => only(path.to_string()),
        Event::Connect { address } => only(address.to_string()),
        Event::NameAsked(name) => decided(name.host.clone(), name.denied),
        Event::ConnectionEnded(ended) => decided(target(&ended.host, ended.port), ended.denied),
        Event::ConnectionDecided(to) => decided(target(&to.host, to.port), to.denied),
        Event::HttpRequest(request) => decided(request_line(request), request.denied),
        Event::Syscall(call) => only(call.name.clone()),
        Event::EgressDropped { .. }
        | Event::SegmentOpened { .. }
        | Event::Recovered { .. }
        | Event::Pruned(_) => only(String::new()),
    }
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|text| cell(&text)).collect();
    format!("{}\r\n", cells.join(","))
}

/// One cell, safe to open: no formula, no control characters but tabs and line ends.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    // The wide forms are taken for the plain ones in some locales.
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']) {
        out.push('\'');
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\"\""),
            '\t' | '\r' | '\n' => out.push(c),
            // As JSON has them, which is what the data's cell is in.
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    if out.contains([',', '"', '\r', '\n']) {
        format!("\"{out}\"")
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_only_where_they_must() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a\"b"), "\"a\"\"b\"");
        assert_eq!(cell("a\r\nb"), "\"a\r\nb\"");
        assert_eq!(cell(""), "");
    }

    #[test]
    fn no_cell_begins_like_a_formula() {
        for start in ["=", "+", "-", "@", "\t", "\r", "\n", "＝"] {
            let made = cell(&format!("{start}cmd|' /C calc'!A0"));
            assert!(made.trim_start_matches('"').starts_with('\''), "{made}");
        }
    }

    #[test]
    fn a_terminal_that_shows_a_cell_obeys_nothing_in_it() {
        assert_eq!(cell("a\u{1b}[2Jb\u{9b}c"), "a\\u001b[2Jb\\u009bc");
    }
}
