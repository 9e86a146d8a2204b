//! From the log into the index: everything after where it stopped.

use super::place::{self, Place};
use super::schema::{self, TABLES, VERSION};
use super::writer::Writer;
use super::{Index, Made, Progress, Rebuilt, Watch, index_error};
use crate::line;
use crate::{AuditError, Folder, Lines, Position, Segment};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Lines between two looks at the clock of whoever watches.
const STEP: u64 = 4096;
/// Bytes of words that FTS5 gathers before it writes.
const HASH_BYTES: i64 = 64 << 20;

/// Where the index stopped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upto {
    pub(super) position: Position,
    pub(super) line_start: u64,
    pub(super) seq: u64,
    pub(super) hash: [u8; 32],
    pub(super) first_seq: u64,
    /// The first line that was there at the last update.
    pub(super) gone_to: u64,
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
