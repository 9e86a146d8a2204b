//! From the log into the index: everything after where it stopped.

use super::entry::{Edge, Entry, Line};
use super::keys::{self, Facet, Keys};
use super::place::{self, Place};
use super::schema::{self, TABLES, VERSION};
use super::{Index, Made, Progress, Rebuilt, Watch, index_error};
use crate::line;
use crate::{AuditError, Folder, Lines, Position, Segment};
use rusqlite::{CachedStatement, Connection, OpenFlags, OptionalExtension, params};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Lines between two looks at the clock of whoever watches.
const STEP: u64 = 4096;
/// Distinct facts that wait to be written.
const MAX_FACTS: usize = 200_000;
/// Bytes of words that FTS5 gathers before it writes.
const HASH_BYTES: i64 = 64 << 20;

/// Where the index stopped.
#[derive(Debug, Clone, Copy)]
struct Upto {
    position: Position,
    line_start: u64,
    seq: u64,
    hash: [u8; 32],
    first_seq: u64,
    /// The first line that was there at the last update.
    gone_to: u64,
}

impl Index {
    /// The index as it is; or why it must be made.
    pub(super) fn open_at(
        folder: &Folder,
        place: &Place,
    ) -> Result<Result<Index, Rebuilt>, AuditError> {
        let Some(path) = place.path(folder).filter(|p| p.exists()) else {
            return Ok(Err(Rebuilt::New));
        };
        let fail = index_error(&path);
        let connection = connect(&path)?;
        let version: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(&fail)?;
        if version != VERSION {
            return Ok(Err(Rebuilt::Version));
        }
        schema::tune(&connection, false).map_err(&fail)?;
        let upto = read_upto(&connection).map_err(&fail)?;
        let first_seq = match still_fits(folder, &upto)? {
            Ok(first_seq) => first_seq,
            Err(why) => return Ok(Err(why)),
        };
        Ok(Ok(Index {
            connection,
            folder: folder.clone(),
            path,
            made: Made::default(),
            first_seq,
            _place: Place::Memory,
        }))
    }

    /// The index keeps the lock that it was opened under.
    pub(super) fn held(mut self, place: Place) -> Index {
        self._place = place;
        self
    }

    /// A new index, of all that the log has.
    pub(super) fn make(
        folder: &Folder,
        place: Place,
        why: Rebuilt,
        watch: Watch<'_>,
    ) -> Result<Index, AuditError> {
        let disk = place.path(folder);
        let path = disk.clone().unwrap_or_else(|| PathBuf::from(":memory:"));
        let fail = index_error(&path);
        let connection = match &disk {
            Some(path) => {
                place::remove(path)?;
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                Folder::open_private(path, flags)?;
                connect(path)?
            }
            None => Connection::open_in_memory().map_err(&fail)?,
        };
        schema::tune(&connection, true).map_err(&fail)?;
        connection.execute_batch(TABLES).map_err(&fail)?;
        connection
            .execute(
                "INSERT INTO words (words, rank) VALUES ('hashsize', ?1)",
                [HASH_BYTES],
            )
            .map_err(&fail)?;
        connection
            .execute(
                "INSERT INTO upto VALUES (0, 0, 0, 0, zeroblob(32), 0, 0)",
                [],
            )
            .map_err(&fail)?;
        let mut index = Index {
            connection,
            folder: folder.clone(),
            path,
            made: Made {
                rebuilt: Some(why),
                in_memory: disk.is_none(),
                lines: 0,
            },
            first_seq: first_line(folder)?.map_or(0, |(seq, _)| seq),
            _place: place,
        };
        index.update(watch)?;
        let fail = index.failed();
        if let Some(path) = &disk {
            // All of it is on the disk before anything says that it is whole.
            let file = File::open(path).map_err(AuditError::io(path))?;
            file.sync_data().map_err(AuditError::io(path))?;
        }
        index
            .connection
            .pragma_update(None, "user_version", VERSION)
            .map_err(&fail)?;
        schema::tune(&index.connection, false).map_err(&fail)?;
        Ok(index)
    }

    pub(super) fn update(&mut self, watch: Watch<'_>) -> Result<(), AuditError> {
        let fail = self.failed();
        let upto = read_upto(&self.connection).map_err(&fail)?;
        let mut left = Left::from(&self.folder, upto.position)?;
        if left.total == 0 && upto.gone_to == self.first_seq {
            return Ok(());
        }
        let transaction = self.connection.transaction().map_err(&fail)?;
        let mut writer = Writer::new(&transaction, upto).map_err(&fail)?;
        let mut lines = Lines::from(&self.folder, upto.position)?;
        while let Some((text, after)) = lines.next()? {
            writer.line(text, after).map_err(&fail)?;
            if writer.lines.is_multiple_of(STEP) {
                watch(left.at(after));
            }
        }
        self.made.lines = writer.lines;
        writer.finish(self.first_seq).map_err(&fail)?;
        transaction.commit().map_err(&fail)
    }
}

fn connect(path: &Path) -> Result<Connection, AuditError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // SQLite follows no link in any part of the path; only the last one is ours to distrust.
    let folder = path.parent().unwrap_or(Path::new("/"));
    let real = folder.canonicalize().map_err(AuditError::io(folder))?;
    let name = path.file_name().unwrap_or_default();
    Connection::open_with_flags(real.join(name), flags).map_err(index_error(path))
}

fn read_upto(connection: &Connection) -> rusqlite::Result<Upto> {
    connection.query_row("SELECT * FROM upto", [], |row| {
        Ok(Upto {
            position: Position {
                segment: row.get(0)?,
                offset: row.get(2)?,
            },
            line_start: row.get(1)?,
            seq: row.get(3)?,
            hash: row.get(4)?,
            first_seq: row.get(5)?,
            gone_to: row.get(6)?,
        })
    })
}

/// Whether the index is of this log: the line that it stopped at is still the same. Gives the number of
/// the log's first line.
fn still_fits(folder: &Folder, upto: &Upto) -> Result<Result<u64, Rebuilt>, AuditError> {
    if upto.seq == 0 {
        return Ok(Err(Rebuilt::New));
    }
    let Some((first_seq, first)) = first_line(folder)? else {
        return Ok(Err(Rebuilt::LogReplaced));
    };
    if upto.position.segment >= first.number {
        let segment = folder.segment(upto.position.segment);
        if last_claim(&segment, upto)? != Some((upto.seq, upto.hash)) {
            return Ok(Err(Rebuilt::LogReplaced));
        }
    } else {
        return Ok(Err(Rebuilt::Pruned));
    }
    let (gone, all) = (
        first_seq.saturating_sub(upto.first_seq),
        upto.seq.saturating_sub(upto.first_seq) + 1,
    );
    Ok(if gone > all / 2 {
        Err(Rebuilt::Pruned)
    } else {
        Ok(first_seq)
    })
}

fn last_claim(segment: &Segment, upto: &Upto) -> Result<Option<(u64, line::Hash)>, AuditError> {
    let file = match File::open(&segment.path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AuditError::io(&segment.path)(error)),
    };
    let length = upto.position.offset.checked_sub(upto.line_start);
    let Some(length) = length.filter(|l| *l > 0 && *l <= line::MAX_LINE as u64 + 1) else {
        return Ok(None);
    };
    let mut text = vec![0; length as usize];
    match file.read_exact_at(&mut text, upto.line_start) {
        Ok(()) => Ok(text.strip_suffix(b"\n").and_then(line::claims)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(AuditError::io(&segment.path)(error)),
    }
}

/// The number of the log's first line, and its segment.
fn first_line(folder: &Folder) -> Result<Option<(u64, Segment)>, AuditError> {
    let Some(first) = folder.segments()?.into_iter().next() else {
        return Ok(None);
    };
    let mut lines = Lines::from(folder, Position::default())?;
    let seq = match lines.next()? {
        Some((text, _)) => line::claims(text).map_or(0, |(seq, _)| seq),
        None => 0,
    };
    Ok(Some((seq, first)))
}

/// Bytes that are still to be read.
struct Left {
    /// Each segment with the bytes before it.
    starts: Vec<(u64, u64)>,
    skipped: u64,
    total: u64,
}

impl Left {
    fn from(folder: &Folder, from: Position) -> Result<Left, AuditError> {
        let mut left = Left {
            starts: Vec::new(),
            skipped: from.offset,
            total: 0,
        };
        for segment in folder.segments()? {
            if segment.number >= from.segment {
                let size = std::fs::metadata(&segment.path).map_or(0, |m| m.len());
                left.starts.push((segment.number, left.total));
                left.total += size;
            }
        }
        if left.starts.first().is_none_or(|(n, _)| *n != from.segment) {
            left.skipped = 0;
        }
        left.total = left.total.saturating_sub(left.skipped);
        Ok(left)
    }

    fn at(&mut self, position: Position) -> Progress {
        let before = self
            .starts
            .iter()
            .rev()
            .find(|(number, _)| *number <= position.segment)
            .map_or(0, |(_, bytes)| *bytes);
        let done = (before + position.offset).saturating_sub(self.skipped);
        self.total = self.total.max(done);
        Progress {
            done,
            total: self.total,
        }
    }
}

/// A call that is being written.
#[derive(Default)]
struct CallRow {
    id: i64,
    skill: Option<String>,
    version: Option<String>,
    isolation: Option<String>,
    level: Option<String>,
    actor: Option<String>,
    request_id: Option<String>,
    started_us: u64,
    last_us: u64,
    status: Option<String>,
    reason: Option<String>,
    wall_ms: Option<u64>,
    denials: u64,
    events: u64,
    first_seq: u64,
    last_seq: u64,
}

struct Writer<'c> {
    connection: &'c Connection,
    event: CachedStatement<'c>,
    words: CachedStatement<'c>,
    keys: Keys,
    calls: HashMap<String, CallRow>,
    next_call: i64,
    facts: HashMap<(i64, Facet, String), u64>,
    span: Option<(u64, u64, u64, u64)>,
    upto: Upto,
    lines: u64,
    key_text: String,
}

impl<'c> Writer<'c> {
    fn new(connection: &'c Connection, upto: Upto) -> rusqlite::Result<Writer<'c>> {
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

    fn line(&mut self, text: &[u8], after: Position) -> rusqlite::Result<()> {
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
            let row = match known_call(self.connection, run)? {
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
        if seq - first >= STEP {
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

    fn finish(mut self, first_seq: u64) -> rusqlite::Result<()> {
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

fn known_call(connection: &Connection, run: &str) -> rusqlite::Result<Option<CallRow>> {
    connection
        .prepare_cached("SELECT * FROM calls WHERE run_id = ?1")?
        .query_row([run], |row| {
            Ok(CallRow {
                id: row.get(0)?,
                skill: row.get(2)?,
                version: row.get(3)?,
                isolation: row.get(4)?,
                level: row.get(5)?,
                actor: row.get(6)?,
                request_id: row.get(7)?,
                started_us: row.get(8)?,
                last_us: row.get(9)?,
                status: row.get(10)?,
                reason: row.get(11)?,
                wall_ms: row.get(12)?,
                denials: row.get(13)?,
                events: row.get(14)?,
                first_seq: row.get(15)?,
                last_seq: row.get(16)?,
            })
        })
        .optional()
}
