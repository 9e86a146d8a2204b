//! What the index takes from a line. Lines are read loosely: one that a newer version wrote is still
//! found by its time, its kind and its call.

use super::keys::{self, Facet};
use crate::{CallEnded, CallRefused, CallStarted, Text};
use serde::Deserialize;
use serde_json::value::RawValue;
use skillcell_core::{Denial, SkillRef};

/// Longer texts are not searched to their end.
const MAX_WORDS: usize = 64 << 10;

#[derive(Deserialize)]
pub(super) struct Line<'a> {
    pub(super) seq: u64,
    pub(super) run_id: Option<&'a str>,
    pub(super) unix_us: u64,
    pub(super) event: &'a str,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

/// The parts of any event that can be asked for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    path: Option<String>,
    to: Option<String>,
    host: Option<String>,
    address: Option<String>,
    kind: Option<String>,
    target: Option<String>,
    reason: Option<String>,
    denied: Option<String>,
    program: Option<String>,
    argv: Vec<String>,
    method: Option<String>,
    name: Option<String>,
    args: Vec<String>,
    syscall: Option<Call>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Call {
    name: String,
    args: Vec<String>,
}

/// Beginning or end of a call.
pub(super) enum Edge {
    Started(Box<CallStarted>),
    Ended(Box<CallEnded>),
    /// Both at once.
    Refused(Box<CallRefused>),
}

/// One event, taken apart.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) facts: Vec<(Facet, String, u64)>,
    /// For the search by words.
    pub(super) words: String,
    pub(super) edge: Option<Edge>,
}

impl Entry {
    pub(super) fn of(line: &Line<'_>) -> Entry {
        let mut entry = Entry::default();
        entry.fact(Facet::Kind, line.event);
        let Some(data) = line.data.map(RawValue::get) else {
            return entry;
        };
        match line.event {
            "call_started" => entry.started(data),
            "call_ended" => entry.ended(data),
            "call_refused" => entry.refused(data),
            kind => entry.event(kind, data),
        }
        entry
    }

    fn started(&mut self, data: &str) {
        let Ok(call) = serde_json::from_str::<Box<CallStarted>>(data) else {
            return;
        };
        self.caller(&call.skill, [&call.actor, &call.request_id]);
        self.edge = Some(Edge::Started(call));
    }

    /// Who called what.
    fn caller(&mut self, skill: &SkillRef, caller: [&Option<Text>; 2]) {
        for text in [&skill.id, &skill.version].into_iter().flatten() {
            self.word(text);
        }
        for text in caller.into_iter().flatten() {
            self.word(text.as_str());
        }
    }

    fn ended(&mut self, data: &str) {
        let Ok(call) = serde_json::from_str::<Box<CallEnded>>(data) else {
            return;
        };
        if let Some(reason) = call.reason {
            self.fact(Facet::Reason, reason.code());
        }
        for denial in &call.denials {
            self.denial(denial);
        }
        for (class, count) in &call.summary.syscalls {
            self.facts.push((Facet::Class, class.clone(), *count));
        }
        self.edge = Some(Edge::Ended(call));
    }

    /// No other event tells what was denied, so that is found by this one.
    fn refused(&mut self, data: &str) {
        let Ok(call) = serde_json::from_str::<Box<CallRefused>>(data) else {
            return;
        };
        self.caller(&call.skill, [&call.actor, &call.request_id]);
        self.fact(Facet::Reason, call.reason.code());
        self.word(call.reason.code());
        for denial in &call.denials {
            self.denial(denial);
            self.fact(Facet::Reason, denial.reason.code());
            self.target(&denial.kind.to_string(), &denial.target);
        }
        self.edge = Some(Edge::Refused(call));
    }

    fn denial(&mut self, denial: &Denial) {
        self.facts
            .push((Facet::Denial, denial.reason.code().to_owned(), denial.count));
    }

    /// What was denied.
    fn target(&mut self, kind: &str, target: &str) {
        match kind {
            "network" => self.host(without_port(target)),
            "syscall" => self.word(target),
            _ => {
                self.word(target);
                self.path(target);
            }
        }
    }

    fn event(&mut self, kind: &str, data: &str) {
        let Ok(parts) = serde_json::from_str::<Parts>(data) else {
            return;
        };
        for reason in [&parts.reason, &parts.denied].into_iter().flatten() {
            self.fact(Facet::Reason, reason);
            self.word(reason);
        }
        if let Some(host) = &parts.host {
            self.host(host);
        }
        // A path of a request is a word; what is asked for by path is a file.
        for path in [&parts.path, &parts.to, &parts.program]
            .into_iter()
            .flatten()
        {
            self.word(path);
            if kind != "http_request" {
                self.path(path);
            }
        }
        for word in [&parts.address, &parts.method].into_iter().flatten() {
            self.word(word);
        }
        for argument in &parts.argv {
            self.word(argument);
        }
        if let Some(target) = &parts.target {
            self.target(parts.kind.as_deref().unwrap_or_default(), target);
        }
        if let (Some(name), "syscall") = (&parts.name, kind) {
            self.syscall(name, &parts.args);
        }
        if let Some(call) = &parts.syscall {
            self.syscall(&call.name, &call.args);
        }
    }

    fn syscall(&mut self, name: &str, args: &[String]) {
        self.fact(Facet::Syscall, name);
        self.word(name);
        for arg in args {
            let bare = arg.trim_matches('"');
            if bare.starts_with('/') {
                self.path(bare);
            }
            // Numbers and addresses would be most of the index, and nobody searches for them.
            if !arg.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                self.word(bare);
            }
        }
    }

    fn host(&mut self, host: &str) {
        let host = keys::host(host);
        self.word(&host);
        self.facts.push((Facet::Host, host, 1));
    }

    fn path(&mut self, path: &str) {
        if path.starts_with('/') {
            self.fact(Facet::Path, keys::path(path));
        }
    }

    fn fact(&mut self, facet: Facet, value: &str) {
        let known = |(f, v, _): &(Facet, String, u64)| *f == facet && v == value;
        if !self.facts.iter().any(known) {
            self.facts.push((facet, value.to_owned(), 1));
        }
    }

    fn word(&mut self, text: &str) {
        let mut end = text.len().min(MAX_WORDS.saturating_sub(self.words.len()));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if !self.words.is_empty() {
            self.words.push('\n');
        }
        self.words.push_str(&text[..end]);
    }
}

/// `host:443` and `[::1]:443` without the port.
fn without_port(target: &str) -> &str {
    let host = match target.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            if host.contains(':') && !host.ends_with(']') {
                target // a bare IPv6 address
            } else {
                host
            }
        }
        _ => target,
    };
    host.strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_taken_off_and_addresses_stay() {
        for (target, host) in [
            ("a.example:443", "a.example"),
            ("a.example", "a.example"),
            ("[::1]:443", "::1"),
            ("::1", "::1"),
            ("10.0.0.1:53", "10.0.0.1"),
        ] {
            assert_eq!(without_port(target), host);
        }
    }
}
