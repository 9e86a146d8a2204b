//! Questions about calls and events. Events are read from the log, at the places that the index gives.

use super::Index;
use super::call_row::CallRow;
use super::filter::{Conditions, Filter, time};
use super::keys::{self, Facet};
use crate::line;
use crate::{AuditError, Folder};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use skillcell_core::RunId;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// More calls than these are not searched by name of the call, but sieved.
const MAX_NAMED: usize = 2000;
/// Hosts that are told of a call.
const MAX_HOSTS: u32 = 8;

/// One call in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub run_id: RunId,
    /// The shortest beginning of the id that no other call has; at least 12 digits.
    pub short: String,
    pub skill: Option<String>,
    pub version: Option<String>,
    pub isolation: Option<String>,
    pub level: Option<String>,
    pub actor: Option<String>,
    pub request_id: Option<String>,
    pub started_us: u64,
    /// Of its last event.
    pub last_us: u64,
    /// None where the call goes on, or its supervisor was killed.
    pub status: Option<String>,
    pub reason: Option<String>,
    pub wall_ms: Option<u64>,
    pub denials: u64,
    pub events: u64,
    /// The first ones by name.
    pub hosts: Vec<String>,
    pub more_hosts: u64,
    id: i64,
    first_seq: u64,
    last_seq: u64,
}

/// An event that was asked for, as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub seq: u64,
    pub line: Vec<u8>,
    /// Of the call.
    pub skill: Option<String>,
}

impl Index {
    /// The newest calls, newest first.
    pub fn calls(&self, filter: &Filter, limit: usize) -> Result<Vec<Call>, AuditError> {
        let conditions = filter.of_calls();
        let sql = format!(
            "SELECT * FROM calls c {} ORDER BY c.started_us DESC, c.id DESC LIMIT {limit}",
            conditions.clause()
        );
        self.select_calls(&sql, conditions.values)
    }

    /// Calls whose id begins so; a few, where there are many.
    pub fn runs(&self, beginning: &str) -> Result<Vec<Call>, AuditError> {
        let beginning = beginning.to_lowercase();
        if !beginning.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Vec::new());
        }
        // Behind every digit comes `g`.
        let sql = "SELECT * FROM calls c WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT 5";
        let end = format!("{beginning}g");
        self.select_calls(sql, vec![beginning.into(), end.into()])
    }

    fn select_calls(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Call>, AuditError> {
        let fail = self.failed();
        let mut statement = self.connection.prepare(sql).map_err(&fail)?;
        let rows = statement
            .query_map(params_from_iter(values), call)
            .map_err(&fail)?;
        let mut calls = rows.collect::<Result<Vec<_>, _>>().map_err(&fail)?;
        for call in &mut calls {
            self.complete(call).map_err(&fail)?;
        }
        Ok(calls)
    }

    fn complete(&self, call: &mut Call) -> rusqlite::Result<()> {
        let mut hosts = self.connection.prepare_cached(
            "SELECT value FROM facts WHERE call = ?1 AND facet = ?2 ORDER BY value LIMIT ?3",
        )?;
        let rows = hosts.query_map((call.id, Facet::Host as u8, MAX_HOSTS), |row| row.get(0))?;
        call.hosts = rows.collect::<Result<_, _>>()?;
        if call.hosts.len() == MAX_HOSTS as usize {
            let all: u64 = self
                .connection
                .prepare_cached("SELECT count(*) FROM facts WHERE call = ?1 AND facet = ?2")?
                .query_row((call.id, Facet::Host as u8), |row| row.get(0))?;
            call.more_hosts = all - call.hosts.len() as u64;
        }
        let run = call.run_id.as_str();
        let mut same = 0;
        for sql in [
            "SELECT max(run_id) FROM calls WHERE run_id < ?1",
            "SELECT min(run_id) FROM calls WHERE run_id > ?1",
        ] {
            let other: Option<String> = self
                .connection
                .prepare_cached(sql)?
                .query_row([run], |row| row.get(0))?;
            let other = other.unwrap_or_default();
            let common = run.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
            same = same.max(common.count());
        }
        call.short = run.chars().take((same + 1).max(12)).collect();
        Ok(())
    }

    /// The newest events that fit, oldest of them first.
    pub fn search(&self, filter: &Filter, limit: usize) -> Result<Vec<Found>, AuditError> {
        let fail = self.failed();
        let Some((first, last)) = self.bounds(filter).map_err(&fail)? else {
            return Ok(Vec::new());
        };
        let mut matching = filter.of_event();
        let mut conditions = filter.of_call();
        if !conditions.is_empty() {
            let named = self.named(&conditions).map_err(&fail)?;
            if named.is_empty() {
                return Ok(Vec::new());
            }
            if named.len() <= MAX_NAMED {
                matching.push(format!("keys : ({})", named.join(" OR ")));
                conditions = Conditions::new();
            }
        }
        let mut all = Conditions::new();
        let from = if matching.is_empty() {
            "events e"
        } else {
            all.add("w.words MATCH ?", [Value::from(matching.join(" AND "))]);
            all.add(
                "w.rowid BETWEEN ? AND ?",
                [Value::from(first), Value::from(last)],
            );
            "words w CROSS JOIN events e ON e.seq = w.rowid"
        };
        all.add(
            "e.seq BETWEEN ? AND ?",
            [Value::from(first), Value::from(last)],
        );
        if let Some(since) = filter.since_us {
            all.add("e.unix_us >= ?", [time(since)]);
        }
        if let Some(until) = filter.until_us {
            all.add("e.unix_us < ?", [time(until)]);
        }
        all.sql.append(&mut conditions.sql);
        all.values.append(&mut conditions.values);
        let order = if matching.is_empty() {
            "e.seq"
        } else {
            "w.rowid"
        };
        let sql = format!(
            "SELECT e.seq, e.segment, e.offset, c.skill FROM {from}
             LEFT JOIN calls c ON c.id = e.call {} ORDER BY {order} DESC LIMIT {limit}",
            all.clause()
        );
        let mut found = self.read(&sql, all.values)?;
        found.reverse();
        Ok(found)
    }

    /// Events of one call in order, without the kind that is left out.
    pub fn events_of(&self, call: &Call, but: Option<&str>) -> Result<Vec<Found>, AuditError> {
        let sql = "SELECT e.seq, e.segment, e.offset, NULL FROM events e
             WHERE e.seq BETWEEN ? AND ? AND e.call = ? AND e.kind <> ? ORDER BY e.seq";
        let values = vec![
            Value::from(signed(call.first_seq.max(self.first_seq))),
            Value::from(signed(call.last_seq)),
            Value::from(call.id),
            Value::from(but.unwrap_or_default().to_owned()),
        ];
        self.read(sql, values)
    }

    /// How many events of a kind a call has.
    pub fn count_of(&self, call: &Call, kind: &str) -> Result<u64, AuditError> {
        self.connection
            .query_row(
                "SELECT coalesce(sum(count), 0) FROM facts WHERE facet = ?1 AND value = ?2 AND call = ?3",
                (Facet::Kind as u8, kind, call.id),
                |row| row.get(0),
            )
            .map_err(self.failed())
    }

    /// The keys of calls; one more than can be named, where there are more.
    fn named(&self, conditions: &Conditions) -> rusqlite::Result<Vec<String>> {
        let sql = format!(
            "SELECT c.id FROM calls c {} LIMIT {}",
            conditions.clause(),
            MAX_NAMED + 1
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(conditions.values.clone()), |row| {
            Ok(keys::of_call(row.get(0)?))
        })?;
        rows.collect()
    }

    /// The first and last line that can be of the time that is asked for.
    fn bounds(&self, filter: &Filter) -> rusqlite::Result<Option<(i64, i64)>> {
        let bounds: (Option<i64>, Option<i64>) = self.connection.query_row(
            "SELECT min(first_seq), max(last_seq) FROM spans WHERE max_us >= ?1 AND min_us < ?2",
            (
                time(filter.since_us.unwrap_or(0)),
                time(filter.until_us.unwrap_or(u64::MAX)),
            ),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok(match bounds {
            (Some(first), Some(last)) => Some((first.max(signed(self.first_seq)), last)),
            _ => None,
        })
    }

    /// Reads the lines that a statement gives the places of.
    fn read(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Found>, AuditError> {
        let fail = self.failed();
        let mut statement = self.connection.prepare(sql).map_err(&fail)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(&fail)?;
        let mut reader = Reader::new(&self.folder);
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(&fail)? {
            let place = (row.get(0), row.get(1), row.get(2), row.get(3));
            let (Ok(seq), Ok(segment), Ok(offset), Ok(skill)) = place else {
                return Err(self.wrong());
            };
            match reader.line(segment, offset)? {
                Some(line) if line::claims(&line).is_some_and(|(at, _)| at == seq) => {
                    found.push(Found { seq, line, skill });
                }
                _ => return Err(self.wrong()),
            }
        }
        Ok(found)
    }

    fn wrong(&self) -> AuditError {
        AuditError::IndexWrong {
            path: self.path.clone(),
            what: "doesn't fit the log",
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn call(row: &Row<'_>) -> rusqlite::Result<Call> {
    let run_id: String = row.get(1)?;
    let run_id = RunId::parse(&run_id).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
    })?;
    let row = CallRow::read(row)?;
    Ok(Call {
        id: row.id,
        run_id,
        short: String::new(),
        skill: row.skill,
        version: row.version,
        isolation: row.isolation,
        level: row.level,
        actor: row.actor,
        request_id: row.request_id,
        started_us: row.started_us,
        last_us: row.last_us,
        status: row.status,
        reason: row.reason,
        wall_ms: row.wall_ms,
        denials: row.denials,
        events: row.events,
        hosts: Vec::new(),
        more_hosts: 0,
        first_seq: row.first_seq,
        last_seq: row.last_seq,
    })
}

/// Single lines out of segments.
struct Reader<'a> {
    folder: &'a Folder,
    open: Option<(u64, File)>,
}

impl<'a> Reader<'a> {
    fn new(folder: &'a Folder) -> Reader<'a> {
        Reader { folder, open: None }
    }

    /// The line that begins there, without its newline; None where there is none.
    fn line(&mut self, number: u64, offset: u64) -> Result<Option<Vec<u8>>, AuditError> {
        let segment = self.folder.segment(number);
        if self.open.as_ref().is_none_or(|(n, _)| *n != number) {
            match File::open(&segment.path) {
                Ok(file) => self.open = Some((number, file)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(AuditError::io(&segment.path)(error)),
            }
        }
        let Some((_, file)) = &self.open else {
            return Ok(None);
        };
        let mut size = 1024;
        loop {
            let mut text = vec![0; size];
            let length =
                read_some(file, &mut text, offset).map_err(AuditError::io(&segment.path))?;
            if let Some(end) = text[..length].iter().position(|b| *b == b'\n') {
                text.truncate(end);
                return Ok(Some(text));
            }
            if length < size || size > line::MAX_LINE {
                return Ok(None);
            }
            size *= 8;
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
