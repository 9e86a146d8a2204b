//! Walks the whole chain and says where it first breaks.

use crate::event::Anchor;
use crate::head::Head;
use crate::line::{self, Fault, GENESIS, Hash, MAX_LINE, hex};
use crate::sign::Checkpoint;
use crate::{AuditError, Event, Folder, Record, Segment};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// What the caller knows from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Expectation {
    /// Heads of the chain, from envelopes or exports: each must be in it.
    pub heads: Vec<String>,
    /// The only key whose checkpoints count. Without it, the one beside the log.
    pub key: Option<String>,
}

/// A chain in which nothing is missing or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub segments: u64,
    pub lines: u64,
    /// The number of the first line that is there; more than 1 where old segments were pruned.
    pub first_seq: u64,
    pub last_seq: u64,
    pub head: Option<String>,
    /// Signed checkpoints, all of which fit.
    pub checkpoints: u64,
    /// Bytes of a line that its writer did not finish; the next one cuts them off.
    pub torn_bytes: u64,
}

/// Where a chain breaks first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub file: PathBuf,
    /// The number of the line in that file, from 1.
    pub line: Option<u64>,
    pub what: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Checks all of a log. The outer error is one of reading.
pub fn verify(
    folder: &Folder,
    expectation: &Expectation,
) -> Result<Result<Verified, Broken>, AuditError> {
    match Walk::new(folder, expectation)?.run() {
        Ok(verified) => Ok(Ok(verified)),
        Err(Stop::Broken(broken)) => Ok(Err(broken)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

enum Stop {
    Broken(Broken),
    Failed(AuditError),
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Stop {
        Stop::Failed(error)
    }
}

fn broken(file: impl Into<PathBuf>, line: Option<u64>, what: impl Into<String>) -> Stop {
    Stop::Broken(Broken {
        file: file.into(),
        line,
        what: what.into(),
    })
}

struct Walk<'a> {
    folder: &'a Folder,
    segments: Vec<Segment>,
    head: Option<Head>,
    /// What must be true of single lines, by number; each with where that is said.
    expected: BTreeMap<u64, Vec<(String, PathBuf, String)>>,
    /// Hashes that must turn up somewhere.
    heads: Vec<String>,
    key: Option<String>,
    checkpoints: u64,
    seq: u64,
    hash: Hash,
    lines: u64,
    torn: u64,
}

impl<'a> Walk<'a> {
    fn new(folder: &'a Folder, expectation: &Expectation) -> Result<Walk<'a>, AuditError> {
        let head = match File::open(folder.head()) {
            Ok(file) => Head::read(&file, folder),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuditError::io(&folder.head())(error)),
        };
        let mut walk = Walk {
            folder,
            segments: folder.segments()?,
            head: None,
            expected: BTreeMap::new(),
            heads: expectation.heads.clone(),
            key: expectation.key.clone(),
            checkpoints: 0,
            seq: 0,
            hash: GENESIS,
            lines: 0,
            torn: 0,
        };
        walk.head = match head {
            Ok(head) => head,
            Err(AuditError::Changed { .. }) => None, // said below, as what is missing
            Err(error) => return Err(error),
        };
        Ok(walk)
    }

    fn run(mut self) -> Result<Verified, Stop> {
        self.take_checkpoints()?;
        self.begin()?;
        let first_seq = self.seq + 1;
        let segments = std::mem::take(&mut self.segments);
        for (index, segment) in segments.iter().enumerate() {
            if index > 0 && segments[index - 1].number + 1 != segment.number {
                let missing = self.folder.segment(segments[index - 1].number + 1);
                return Err(broken(missing.path, None, "this segment is missing"));
            }
            self.segment(segment, index + 1 == segments.len())?;
        }
        self.end(segments.last())?;
        Ok(Verified {
            segments: segments.len() as u64,
            lines: self.lines,
            first_seq,
            last_seq: self.seq,
            head: (self.lines > 0).then(|| hex(&self.hash)),
            checkpoints: self.checkpoints,
            torn_bytes: self.torn,
        })
    }

    /// Every checkpoint must be signed; what it says of the chain is looked at on the way.
    fn take_checkpoints(&mut self) -> Result<(), Stop> {
        let path = self.folder.checkpoints();
        let key = match &self.key {
            Some(key) => Some(key.clone()),
            None => self.own_key()?,
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return match self.key.as_ref().or(key.as_ref()) {
                    // A key signs from its first call on.
                    Some(_) if self.head.is_some_and(|h| h.seq > 0) => Err(broken(
                        &path,
                        None,
                        "there is a key, but no checkpoint of it",
                    )),
                    _ => Ok(()),
                };
            }
            Err(error) => return Err(AuditError::io(&path)(error).into()),
        };
        let Some(key) = key else {
            return Err(broken(
                &path,
                None,
                "there are checkpoints, but the public key is gone",
            ));
        };
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let number = Some(index as u64 + 1);
            let Some(line) = line.strip_suffix('\n') else {
                break; // its writer did not finish it
            };
            let checkpoint: Checkpoint = serde_json::from_str(line)
                .map_err(|_| broken(&path, number, "this is not a checkpoint"))?;
            if !checkpoint.holds(&key) {
                return Err(broken(
                    &path,
                    number,
                    "the signature is not by the log's key, or not of this",
                ));
            }
            self.checkpoints += 1;
            let says = format!("checkpoint {} was signed for another line", index + 1);
            self.expected.entry(checkpoint.seq).or_default().push((
                checkpoint.hash,
                path.clone(),
                says,
            ));
        }
        Ok(())
    }

    fn own_key(&self) -> Result<Option<String>, AuditError> {
        let path = self.folder.public_key();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuditError::io(&path)(error)),
        }
    }

    /// Where the first segment that is there goes on from.
    fn begin(&mut self) -> Result<(), Stop> {
        let Some(first) = self.segments.first().cloned() else {
            return Ok(());
        };
        if first.number == 1 {
            return Ok(());
        }
        for segment in &self.segments {
            if let Some(anchor) = announced(segment, first.number - 1)?
                && let Some(hash) = line::unhex(anchor.hash.as_bytes())
            {
                self.seq = anchor.seq;
                self.hash = hash;
                return Ok(());
            }
        }
        Err(broken(
            self.folder.segment(first.number - 1).path,
            None,
            "this segment is missing, and the log doesn't say that it was pruned",
        ))
    }

    fn segment(&mut self, segment: &Segment, last: bool) -> Result<(), Stop> {
        let path = &segment.path;
        let mut reader = open(segment)?;
        let mut line = Vec::with_capacity(4096);
        let mut number = 0;
        while next_line(&mut reader, &mut line, segment)? {
            number += 1;
            let at = Some(number);
            let Some(text) = line.strip_suffix(b"\n") else {
                let beyond = self.head.is_some_and(|h| h.seq <= self.seq);
                if last && beyond {
                    self.torn = line.len() as u64;
                    return Ok(());
                }
                return Err(broken(path, at, "the line is cut off"));
            };
            self.hash = line::check(text, self.seq + 1, &self.hash).map_err(|fault| {
                let what = match fault {
                    Fault::NotALine => "this is not a line of a log".to_owned(),
                    Fault::Seq { found } => format!(
                        "this is line {found} of the log, where line {} belongs",
                        self.seq + 1
                    ),
                    Fault::Hash => "the line, or one before it, was changed".to_owned(),
                };
                broken(path, at, what)
            })?;
            self.seq += 1;
            self.lines += 1;
            if number == 1 {
                first_of(text, segment).map_err(|what| broken(path, at, what))?;
            }
            self.compare(path, at)?;
        }
        if number == 0 && !last {
            return Err(broken(path, None, "the segment is empty"));
        }
        Ok(())
    }

    /// What others say of the line that was just read.
    fn compare(&mut self, path: &std::path::Path, at: Option<u64>) -> Result<(), Stop> {
        if let Some(head) = self.head
            && head.seq == self.seq
            && head.hash != self.hash
        {
            return Err(broken(
                path,
                at,
                "the last writer left another line here than this one",
            ));
        }
        if !self.heads.is_empty() {
            let found = hex(&self.hash);
            self.heads.retain(|head| *head != found);
        }
        if self.expected.is_empty() {
            return Ok(());
        }
        for (hash, file, says) in self.expected.remove(&self.seq).unwrap_or_default() {
            if hash != hex(&self.hash) {
                return Err(broken(path, at, format!("{says} ({})", file.display())));
            }
        }
        Ok(())
    }

    fn end(&mut self, last: Option<&Segment>) -> Result<(), Stop> {
        let file = last.map_or_else(|| self.folder.path().to_owned(), |s| s.path.clone());
        match self.head {
            Some(head) if head.seq > self.seq => {
                return Err(broken(
                    file,
                    None,
                    format!(
                        "the log ends with line {}, but {} lines were written",
                        self.seq, head.seq
                    ),
                ));
            }
            None if self.lines > 1 => {
                return Err(broken(
                    self.folder.head(),
                    None,
                    "it is missing or damaged, so the end of the log can't be known",
                ));
            }
            _ => {}
        }
        // Lines that were pruned are said to be gone by the chain itself.
        if let Some((seq, said)) = self.expected.range(self.seq + 1..).next()
            && let Some((_, file, _)) = said.first()
        {
            return Err(broken(
                file,
                None,
                format!(
                    "line {seq} was signed, but the log ends with line {}",
                    self.seq
                ),
            ));
        }
        match self.heads.first() {
            Some(head) => Err(broken(
                file,
                None,
                format!("no line of the log has the hash {head}"),
            )),
            None => Ok(()),
        }
    }
}

pub(crate) fn open(segment: &Segment) -> Result<BufReader<File>, AuditError> {
    let file = File::open(&segment.path).map_err(AuditError::io(&segment.path))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// Reads a line with its newline; false at the end of the file.
pub(crate) fn next_line(
    reader: &mut BufReader<File>,
    line: &mut Vec<u8>,
    segment: &Segment,
) -> Result<bool, AuditError> {
    line.clear();
    reader
        .by_ref()
        .take(MAX_LINE as u64 + 1)
        .read_until(b'\n', line)
        .map_err(AuditError::io(&segment.path))?;
    Ok(!line.is_empty())
}

fn first_of(text: &[u8], segment: &Segment) -> Result<(), String> {
    match serde_json::from_slice::<Record>(text).map(|record| record.event) {
        Ok(Event::SegmentOpened { segment: says, .. }) if says == segment.number => Ok(()),
        _ => Err("a segment does not begin with this line".to_owned()),
    }
}

/// The line that says that everything up to a segment was pruned.
fn announced(segment: &Segment, last_gone: u64) -> Result<Option<Anchor>, AuditError> {
    let mut reader = open(segment)?;
    let mut line = Vec::new();
    while next_line(&mut reader, &mut line, segment)? {
        let marked = line
            .windows(16)
            .any(|window| window == b"\"event\":\"pruned\"");
        if marked
            && let Ok(record) = serde_json::from_slice::<Record>(&line)
            && let Event::Pruned(anchor) = record.event
            && anchor.segment == last_gone
        {
            return Ok(Some(anchor));
        }
    }
    Ok(None)
}
