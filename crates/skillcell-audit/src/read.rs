//! Reads a log from its beginning, or from any place in it.

use crate::verify::{next_line, open};
use crate::{AuditError, Folder, Record, Segment};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// A place between two lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// 0: before the first one that is there.
    pub segment: u64,
    pub offset: u64,
}

/// Whole lines from a place on, as text. An unfinished last line is not given.
pub struct Lines {
    segments: std::vec::IntoIter<Segment>,
    current: Option<(Segment, BufReader<File>, u64)>,
    line: Vec<u8>,
    from: Position,
}

impl Lines {
    pub fn from(folder: &Folder, from: Position) -> Result<Lines, AuditError> {
        let mut segments = folder.segments()?;
        segments.retain(|s| s.number >= from.segment);
        Ok(Lines {
            segments: segments.into_iter(),
            current: None,
            line: Vec::new(),
            from,
        })
    }

    /// The next line without its newline, and the place after it.
    #[expect(
        clippy::should_implement_trait,
        reason = "lines are lent, which an iterator can't do"
    )]
    pub fn next(&mut self) -> Result<Option<(&[u8], Position)>, AuditError> {
        loop {
            if self.current.is_none() {
                let Some(segment) = self.segments.next() else {
                    return Ok(None);
                };
                let mut reader = open(&segment)?;
                let offset = if segment.number == self.from.segment {
                    self.from.offset
                } else {
                    0
                };
                reader
                    .seek(SeekFrom::Start(offset))
                    .map_err(AuditError::io(&segment.path))?;
                self.current = Some((segment, reader, offset));
            }
            let Some((segment, reader, offset)) = &mut self.current else {
                return Ok(None);
            };
            if next_line(reader, &mut self.line, segment)? && self.line.ends_with(b"\n") {
                *offset += self.line.len() as u64;
                let after = Position {
                    segment: segment.number,
                    offset: *offset,
                };
                return Ok(Some((&self.line[..self.line.len() - 1], after)));
            }
            self.current = None;
        }
    }
}

/// The place before the last whole lines of a log.
pub fn before_last(folder: &Folder, mut lines: u64) -> Result<Position, AuditError> {
    for segment in folder.segments()?.into_iter().rev() {
        match back(&segment, lines)? {
            Ok(offset) => {
                return Ok(Position {
                    segment: segment.number,
                    offset,
                });
            }
            Err(fewer) => lines -= fewer,
        }
    }
    Ok(Position::default())
}

/// Where the last lines of a segment begin; or how many there are, where these are fewer.
fn back(segment: &Segment, lines: u64) -> Result<Result<u64, u64>, AuditError> {
    let failed = || AuditError::io(&segment.path);
    let file = File::open(&segment.path).map_err(failed())?;
    let mut end = file.metadata().map_err(failed())?.len();
    let mut block = vec![0; 64 << 10];
    let mut seen = 0;
    while end > 0 {
        let size = end.min(block.len() as u64);
        let part = &mut block[..size as usize];
        file.read_exact_at(part, end - size).map_err(failed())?;
        for (at, _) in part.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            if seen == lines {
                return Ok(Ok(end - size + at as u64 + 1));
            }
            seen += 1;
        }
        end -= size;
    }
    Ok(if seen == lines { Ok(0) } else { Err(seen) })
}

/// One line as a record. Lines that a newer version wrote may not be readable.
pub fn parse(line: &[u8]) -> Result<Record, serde_json::Error> {
    serde_json::from_slice(line)
}
