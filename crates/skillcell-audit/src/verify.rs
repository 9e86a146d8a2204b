//! Walks the whole chain and says where it first breaks.

use crate::event::Anchor;
use crate::head::Head;
use crate::line::{self, Fault, GENESIS, Hash, MAX_LINE, hex};
use crate::sign::Checkpoint;
use crate::{AuditError, Event, Folder, Record, Segment};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

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
    /// The last line that a signature covers; those after it are only chained.
    pub signed_seq: Option<u64>,
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

/// A key signs as soon as it is made, so from then on there is a checkpoint.
fn unsigned(checkpoints: &Path) -> Stop {
    broken(checkpoints, None, "there is a key, but no checkpoint of it")
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
    signed_seq: Option<u64>,
    seq: u64,
    hash: Hash,
    /// The first line follows one that is gone, and nothing says which hash that had.
    unanchored: bool,
    lines: u64,
    torn: u64,
}

impl<'a> Walk<'a> {
    fn new(folder: &'a Folder, expectation: &Expectation) -> Result<Walk<'a>, AuditError> {
        Ok(Walk {
            folder,
            segments: Vec::new(),
            head: read_head(folder)?,
            expected: BTreeMap::new(),
            heads: expectation.heads.clone(),
            key: expectation.key.clone(),
            checkpoints: 0,
            signed_seq: None,
            seq: 0,
            hash: GENESIS,
            unanchored: false,
            lines: 0,
            torn: 0,
        })
    }

    fn run(mut self) -> Result<Verified, Stop> {
        // Writers write lines, then the head, then a checkpoint. Read the other way round, none of these
        // can be ahead of what follows it, however busy the log is.
        self.take_checkpoints()?;
        self.head = read_head(self.folder)?;
        self.segments = self.folder.segments()?;
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
            signed_seq: self.signed_seq,
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
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return match key {
                    Some(_) => Err(unsigned(&path)),
                    None => Ok(()),
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
        for (index, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
            let number = Some(index as u64 + 1);
            let Some(line) = line.strip_suffix(b"\n") else {
                break; // its writer did not finish it
            };
            let checkpoint: Checkpoint = serde_json::from_slice(line)
                .map_err(|_| broken(&path, number, "this is not a checkpoint"))?;
            if !checkpoint.holds(&key) {
                return Err(broken(
                    &path,
                    number,
                    "the signature is not by the log's key, or not of this",
                ));
            }
            self.checkpoints += 1;
            self.signed_seq = self.signed_seq.max(Some(checkpoint.seq));
            if checkpoint.seq == 0 {
                continue; // the beginning, before there was a line
            }
            let says = format!("checkpoint {} was signed for another line", index + 1);
            self.expected.entry(checkpoint.seq).or_default().push((
                checkpoint.hash,
                path.clone(),
                says,
            ));
        }
        if self.checkpoints == 0 {
            return Err(unsigned(&path));
        }
        Ok(())
    }

    fn own_key(&self) -> Result<Option<String>, AuditError> {
        let path = self.folder.public_key();
        match std::fs::read(&path) {
            // Whatever else it is, it is then no key that has signed anything.
            Ok(text) => Ok(Some(String::from_utf8_lossy(&text).trim().to_owned())),
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
        let mut latest = None;
        for segment in self.segments.iter().rev() {
            latest = announced(segment)?;
            if latest.is_some() {
                break;
            }
        }
        let missing = || {
            broken(
                self.folder.segment(first.number - 1).path,
                None,
                "this segment is missing, and the log doesn't say that it was pruned",
            )
        };
        let Some(anchor) = latest.filter(|a| a.segment >= first.number - 1) else {
            return Err(missing());
        };
        let Some(hash) = line::unhex(anchor.hash.as_bytes()) else {
            return Err(missing());
        };
        if anchor.segment == first.number - 1 {
            self.seq = anchor.seq;
            self.hash = hash;
            return Ok(());
        }
        // Whoever pruned was stopped before all of it was gone. What is left must lead to the line that
        // the log says it ended with.
        let mut reader = open(&first)?;
        let mut line = Vec::new();
        next_line(&mut reader, &mut line, &first)?;
        let begins = line.strip_suffix(b"\n").and_then(line::claims);
        match begins {
            Some((seq, _)) if (1..=anchor.seq).contains(&seq) => {
                self.seq = seq - 1;
                self.unanchored = true;
                let says = "the log says that what was pruned ended with another line".to_owned();
                let place = (anchor.hash, first.path, says);
                self.expected.entry(anchor.seq).or_default().push(place);
                Ok(())
            }
            _ => Err(broken(first.path, Some(1), "this is not a line of a log")),
        }
    }

    fn segment(&mut self, segment: &Segment, last: bool) -> Result<(), Stop> {
        let path = &segment.path;
        let mut reader = open(segment)?;
        let mut line = Vec::with_capacity(4096);
        let mut number = 0;
        let mut offset = 0;
        while next_line(&mut reader, &mut line, segment)? {
            number += 1;
            let at = Some(number);
            offset += line.len() as u64;
            let Some(text) = line.strip_suffix(b"\n") else {
                // Without a head there is at most the first line; more than that is said below.
                let beyond = self.head.is_none_or(|h| h.seq <= self.seq);
                if last && beyond {
                    self.torn = line.len() as u64;
                    return Ok(());
                }
                return Err(broken(path, at, "the line is cut off"));
            };
            self.hash = self.next_hash(text).map_err(|fault| {
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
            self.compare(segment, at, offset)?;
        }
        if number == 0 && !last {
            return Err(broken(path, None, "the segment is empty"));
        }
        Ok(())
    }

    fn next_hash(&mut self, text: &[u8]) -> Result<Hash, Fault> {
        if std::mem::take(&mut self.unanchored) {
            let (_, hash) = line::claims(text).ok_or(Fault::NotALine)?;
            return Ok(hash);
        }
        line::check(text, self.seq + 1, &self.hash)
    }

    /// What others say of the line that was just read, which ends at `offset` of its segment.
    fn compare(&mut self, segment: &Segment, at: Option<u64>, offset: u64) -> Result<(), Stop> {
        let path = &segment.path;
        if let Some(head) = self.head.filter(|head| head.seq == self.seq) {
            if head.hash != self.hash {
                return Err(broken(
                    path,
                    at,
                    "the last writer left another line here than this one",
                ));
            }
            if (head.segment, head.length) != (segment.number, offset) {
                let what = format!("it says that line {} ends elsewhere", head.seq);
                return Err(broken(self.folder.head(), None, what));
            }
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

/// What the last line about pruning in a segment says.
fn announced(segment: &Segment) -> Result<Option<Anchor>, AuditError> {
    const MARK: &[u8] = b"\"event\":\"pruned\"";
    let mut reader = open(segment)?;
    let mut line = Vec::new();
    let mut latest = None;
    while next_line(&mut reader, &mut line, segment)? {
        if line.windows(MARK.len()).any(|window| window == MARK)
            && let Ok(record) = serde_json::from_slice::<Record>(&line)
            && let Event::Pruned(anchor) = record.event
        {
            latest = Some(anchor);
        }
    }
    Ok(latest)
}

/// None where there is none, or it can't be read; what that means is said where it matters.
fn read_head(folder: &Folder) -> Result<Option<Head>, AuditError> {
    let path = folder.head();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AuditError::io(&path)(error)),
    };
    match Head::read(&file, folder) {
        Err(AuditError::Changed { .. }) => Ok(None),
        read => read,
    }
}
