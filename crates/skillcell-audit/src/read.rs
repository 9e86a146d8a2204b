//! Reads a log from its beginning, or from any place in it.

use crate::verify::{next_line, open};
use crate::{AuditError, Folder, Record, Segment};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};

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

/// One line as a record. Lines that a newer version wrote may not be readable.
pub fn parse(line: &[u8]) -> Result<Record, serde_json::Error> {
    serde_json::from_slice(line)
}
