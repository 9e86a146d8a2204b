//! What is asked for, as conditions on the tables.

use super::keys::{self, Facet};
use rusqlite::types::Value;
use skillcell_core::RunId;

/// Which calls or events. Everything that is given must be true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words of the event, in any case; parts that belong together stand in one. With `*` at its end
    /// it is the beginning of one, which takes longer the more words begin so.
    pub text: Vec<String>,
    /// `category/name`, its last part, or either with `@version`.
    pub skill: Option<String>,
    /// As in an envelope, or `unfinished`.
    pub status: Option<String>,
    /// Microseconds since 1970, this one included.
    pub since_us: Option<u64>,
    /// This one not included.
    pub until_us: Option<u64>,
    /// A name or an address; `*.example.com` is everything below it.
    pub host: Option<String>,
    /// This file, or everything in this folder.
    pub path: Option<String>,
    pub syscall: Option<String>,
    pub reason: Option<String>,
    /// The kind of event.
    pub event: Option<String>,
    pub run: Option<RunId>,
    pub actor: Option<String>,
    pub request_id: Option<String>,
}

/// Part of a `WHERE`, with its values in order.
pub(super) struct Conditions {
    pub(super) sql: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    pub(super) fn new() -> Conditions {
        Conditions {
            sql: Vec::new(),
            values: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push(sql.to_owned());
        self.values.extend(values);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sql.is_empty()
    }

    /// `WHERE …`, or nothing.
    pub(super) fn clause(&self) -> String {
        if self.sql.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", self.sql.join(" AND "))
        }
    }
}

impl Filter {
    /// Conditions on `calls c` that hold for every event of the call.
    pub(super) fn of_call(&self) -> Conditions {
        let mut all = Conditions::new();
        let text = |value: &str| Value::from(value.to_owned());
        if let Some(skill) = &self.skill {
            let (name, version) = match skill.split_once('@') {
                Some((name, version)) => (name, Some(version)),
                None => (skill.as_str(), None),
            };
            all.add(
                "(c.skill = ? OR substr(c.skill, instr(c.skill, '/') + 1) = ?)",
                [text(name), text(name)],
            );
            if let Some(version) = version {
                all.add("c.version = ?", [text(version)]);
            }
        }
        match self.status.as_deref() {
            Some("unfinished") => all.add("c.status IS NULL", []),
            Some(status) => all.add("c.status = ?", [text(status)]),
            None => {}
        }
        if let Some(run) = &self.run {
            all.add("c.run_id = ?", [text(run.as_str())]);
        }
        if let Some(actor) = &self.actor {
            all.add("c.actor = ?", [text(actor)]);
        }
        if let Some(id) = &self.request_id {
            all.add("c.request_id = ?", [text(id)]);
        }
        all
    }

    /// Conditions on `calls c`, where the call has events that fit.
    pub(super) fn of_calls(&self) -> Conditions {
        let mut all = self.of_call();
        if let Some(since) = self.since_us {
            all.add("c.started_us >= ?", [time(since)]);
        }
        if let Some(until) = self.until_us {
            all.add("c.started_us < ?", [time(until)]);
        }
        for (facet, value) in self.facets() {
            let facet_number = Value::from(facet as i64);
            let fact =
                |test: &str| format!("c.id IN (SELECT call FROM facts WHERE facet = ? AND {test})");
            match (facet, value.strip_prefix('*')) {
                (Facet::Host, Some(below)) if below.starts_with('.') => all.add(
                    &fact("substr(value, -length(?)) = ?"),
                    [
                        facet_number,
                        below.to_owned().into(),
                        below.to_owned().into(),
                    ],
                ),
                (Facet::Path, _) if value != "/" => all.add(
                    // The character after `/` is `0`.
                    &fact("(value = ? OR (value > ? AND value < ?))"),
                    [
                        facet_number,
                        value.clone().into(),
                        format!("{value}/").into(),
                        format!("{value}0").into(),
                    ],
                ),
                (Facet::Path, _) => all.add(&fact("1"), [facet_number]),
                _ => all.add(&fact("value = ?"), [facet_number, value.into()]),
            }
        }
        all
    }

    /// The search in `words` for what a single event must have.
    pub(super) fn of_event(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .facets()
            .into_iter()
            .map(|(facet, value)| format!("keys : {}", keys::key(facet, &value)))
            .collect();
        for text in &self.text {
            let (words, begins) = match text.strip_suffix('*') {
                Some(words) => (words, " *"),
                None => (text.as_str(), ""),
            };
            // Quoted, nothing in it is syntax.
            all.push(format!("text : \"{}\"{begins}", words.replace('"', " ")));
        }
        all
    }

    fn facets(&self) -> Vec<(Facet, String)> {
        let same = |value: &String| value.clone();
        [
            (Facet::Host, self.host.as_deref().map(keys::host)),
            (
                Facet::Path,
                self.path.as_deref().map(|p| keys::path(p).to_owned()),
            ),
            (Facet::Syscall, self.syscall.as_ref().map(same)),
            (Facet::Reason, self.reason.as_ref().map(same)),
            (Facet::Kind, self.event.as_ref().map(same)),
        ]
        .into_iter()
        .filter_map(|(facet, value)| Some((facet, value?)))
        .collect()
    }
}

pub(super) fn time(micros: u64) -> Value {
    Value::from(i64::try_from(micros).unwrap_or(i64::MAX))
}
