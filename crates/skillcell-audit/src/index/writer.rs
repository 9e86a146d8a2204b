//! Writes the lines of the log into the tables.

use super::call_row::CallRow;
use super::entry::{Edge, Entry, Line};
use super::keys::{self, Facet, Keys};
use super::update::Upto;
use crate::{Position, line};
use rusqlite::{CachedStatement, Connection, params};
use std::collections::HashMap;

/// Distinct facts that wait to be written.
const MAX_FACTS: usize = 200_000;
/// Lines that share one span of time.
const SPAN: u64 = 4096;

/// Writes lines into the tables, inside of one transaction.
pub(super) struct Writer<'c> {
    connection: &'c Connection,
    event: CachedStatement<'c>,
    words: CachedStatement<'c>,
    keys: Keys,
    calls: HashMap<String, CallRow>,
    next_call: i64,
    facts: HashMap<(i64, Facet, String), u64>,
    span: Option<(u64, u64, u64, u64)>,
    upto: Upto,
    /// How many it was given.
    pub(super) lines: u64,
    key_text: String,
}

impl<'c> Writer<'c> {
    pub(super) fn new(connection: &'c Connection, upto: Upto) -> rusqlite::Result<Writer<'c>> {
        let next_call: i64 =
            connection.query_row("SELECT coalesce(max(id), 0) + 1 FROM calls", [], |row| {
                row.get(0)
            })?;
        Ok(Writer {
            connection,
            event: connection
                .prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?,
            words: connection
                .prepare_cached("INSERT INTO words (rowid, text, keys) VALUES (?1, ?2, ?3)")?,
            keys: Keys::default(),
            calls: HashMap::new(),
            next_call,
            facts: HashMap::new(),
            span: None,
            upto,
            lines: 0,
            key_text: String::new(),
        })
    }

    pub(super) fn line(&mut self, text: &[u8], after: Position) -> rusqlite::Result<()> {
        // What is no line of a log can't be found; `verify` is there to complain.
        let Some((seq, hash)) = line::claims(text) else {
            return Ok(());
        };
        if seq <= self.upto.seq {
            return Ok(());
        }
        let line_start = after.offset - text.len() as u64 - 1;
        if self.upto.seq == 0 {
            self.upto.first_seq = seq;
        }
        self.upto = Upto {
            position: after,
            line_start,
            seq,
            hash,
            ..self.upto
        };
        self.lines += 1;
        let Ok(line) = serde_json::from_slice::<Line<'_>>(text) else {
            return Ok(());
        };
        if line.seq != seq {
            return Ok(());
        }
        let entry = Entry::of(&line);
        let call = match line.run_id {
            Some(run) => Some(self.call(run, &line, &entry)?),
            None => None,
        };
        self.event.execute(params![
            seq,
            call,
            line.unix_us,
            line.event,
            after.segment,
            line_start
        ])?;
        self.key_text.clear();
        if let Some(call) = call {
            self.key_text.push_str(&keys::of_call(call));
        }
        for (facet, value, count) in entry.facts {
            if !matches!(facet, Facet::Denial | Facet::Class) {
                self.keys.add(&mut self.key_text, facet, &value);
            }
            if let Some(call) = call {
                *self.facts.entry((call, facet, value)).or_default() += count;
            }
        }
        self.words
            .execute(params![seq, entry.words, self.key_text])?;
        self.span(seq, line.unix_us)?;
        if self.facts.len() > MAX_FACTS {
            self.flush()?;
        }
        Ok(())
    }

    /// Counts the event in its call's row, and gives its number.
    fn call(&mut self, run: &str, line: &Line<'_>, entry: &Entry) -> rusqlite::Result<i64> {
        if !self.calls.contains_key(run) {
            let row = match CallRow::of_run(self.connection, run)? {
                Some(row) => row,
                None => {
                    self.next_call += 1;
                    CallRow {
                        id: self.next_call - 1,
                        started_us: line.unix_us,
                        first_seq: line.seq,
                        ..CallRow::default()
                    }
                }
            };
            self.calls.insert(run.to_owned(), row);
        }
        let Some(row) = self.calls.get_mut(run) else {
            return Err(rusqlite::Error::QueryReturnedNoRows);
        };
        row.events += 1;
        row.last_seq = line.seq;
        row.last_us = line.unix_us;
        match &entry.edge {
            Some(Edge::Started(call)) => {
                row.skill = call.skill.id.clone();
                row.version = call.skill.version.clone();
                row.isolation = Some(word(&call.isolation));
                row.level = Some(call.level.to_string());
                row.actor = call.actor.as_ref().map(ToString::to_string);
                row.request_id = call.request_id.as_ref().map(ToString::to_string);
                row.started_us = line.unix_us;
            }
            Some(Edge::Ended(call)) => {
                row.status = Some(word(&call.status));
                row.reason = call.reason.map(|r| r.to_string());
                row.wall_ms = Some(call.usage.wall_ms);
                row.denials = call.denials.iter().map(|d| d.count).sum();
            }
            Some(Edge::Refused(call)) => {
                row.skill = call.skill.id.clone();
                row.version = call.skill.version.clone();
                row.actor = call.actor.as_ref().map(ToString::to_string);
                row.request_id = call.request_id.as_ref().map(ToString::to_string);
                row.status = Some(word(&call.status));
                row.reason = Some(call.reason.to_string());
                row.denials = call.denials.iter().map(|d| d.count).sum();
            }
            None => {}
        }
        Ok(row.id)
    }

    fn span(&mut self, seq: u64, unix_us: u64) -> rusqlite::Result<()> {
        let (first, last, min, max) = self.span.unwrap_or((seq, seq, unix_us, unix_us));
        self.span = Some((first, last.max(seq), min.min(unix_us), max.max(unix_us)));
        if seq - first >= SPAN {
            self.write_span()?;
        }
        Ok(())
    }

    fn write_span(&mut self) -> rusqlite::Result<()> {
        if let Some((first, last, min, max)) = self.span.take() {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO spans VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![first, last, min, max])?;
        }
        Ok(())
    }

    fn flush(&mut self) -> rusqlite::Result<()> {
        let mut facts: Vec<_> = self.facts.drain().collect();
        // In the order of the table, which is written much faster so.
        facts.sort_unstable_by(|((a, f, v), _), ((b, g, w), _)| {
            (*f as u8, v, a).cmp(&(*g as u8, w, b))
        });
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO facts VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        for ((call, facet, value), count) in facts {
            insert.execute(params![facet as u8, value, call, count])?;
        }
        let mut calls = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO calls VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?;
        for (run, row) in &self.calls {
            calls.execute(params![
                row.id,
                run,
                row.skill,
                row.version,
                row.isolation,
                row.level,
                row.actor,
                row.request_id,
                row.started_us,
                row.last_us,
                row.status,
                row.reason,
                row.wall_ms,
                row.denials,
                row.events,
                row.first_seq,
                row.last_seq
            ])?;
        }
        self.calls.retain(|_, row| row.status.is_none());
        Ok(())
    }

    pub(super) fn finish(mut self, first_seq: u64) -> rusqlite::Result<()> {
        self.flush()?;
        self.write_span()?;
        if first_seq > self.upto.gone_to {
            self.connection.execute_batch(&format!(
                "DELETE FROM facts WHERE call IN (SELECT id FROM calls WHERE last_seq < {first_seq});
                 DELETE FROM calls WHERE last_seq < {first_seq};"
            ))?;
        }
        self.connection.execute(
            "UPDATE upto SET segment = ?1, line_start = ?2, offset = ?3, seq = ?4, hash = ?5,
             first_seq = ?6, gone_to = ?7",
            params![
                self.upto.position.segment,
                self.upto.line_start,
                self.upto.position.offset,
                self.upto.seq,
                self.upto.hash,
                self.upto.first_seq,
                first_seq
            ],
        )?;
        Ok(())
    }
}

/// The word that a plain enum is written as.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
