//! Appends to the chain. Calls that run at once, in any number of processes, take turns.

use crate::event::Anchor;
use crate::head::Head;
use crate::line::{self, GENESIS, Hash, hex};
use crate::sign::Signer;
use crate::{AuditError, Event, Folder, Segment, clock, prune};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The version of the layout of lines.
pub(crate) const FORMAT: u32 = 1;

/// When a new segment begins, and when old ones go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub segment_bytes: u64,
    pub segment_age: Duration,
    /// Of all segments together; `None` keeps them.
    pub keep_bytes: Option<u64>,
    pub keep_age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            segment_bytes: 64 << 20,
            segment_age: Duration::from_secs(7 * 24 * 3600),
            keep_bytes: None,
            keep_age: None,
        }
    }
}

/// Events that wait for their place in the chain: the insides of lines.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds what `write` writes as one body.
    pub(crate) fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let start = self.bytes.len();
        match write(&mut self.bytes) {
            Ok(()) => self.ends.push(self.bytes.len()),
            Err(error) => {
                self.bytes.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }

    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A log, open for appending.
#[derive(Debug)]
pub struct Log {
    folder: Folder,
    retention: Retention,
    lock: File,
    head: File,
    active: Option<(Segment, File)>,
    /// When the active segment was begun.
    born: Option<SystemTime>,
    signer: Option<Signer>,
}

/// The lock, as long as it lives.
struct Turn<'a>(&'a File);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Closing the file would do the same.
        flock(self.0, FlockOperation::Unlock).unwrap_or(());
    }
}

impl Log {
    pub fn open(folder: Folder, retention: Retention) -> Result<Log, AuditError> {
        folder.make()?;
        let lock = Folder::open_private(&folder.lock(), OFlags::RDWR | OFlags::CREATE)?;
        let head = Head::open(&folder)?;
        let signer = Signer::load(&folder)?;
        Ok(Log {
            folder,
            retention,
            lock,
            head,
            active: None,
            born: None,
            signer,
        })
    }

    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The file that lines go to now, once there was one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.active.as_ref().map(|(s, _)| s.path.clone())
    }

    /// Appends all of a batch, or nothing. Gives the new end of the chain.
    pub(crate) fn append(&mut self, batch: &Batch) -> Result<Hash, AuditError> {
        let lock = self.turn()?;
        let _turn = Turn(&lock);
        let mut head = self.catch_up()?;
        head = self.rotate(head)?;
        self.write(&mut head, batch)?;
        Ok(head.hash)
    }

    /// Signs the end of the chain, where there is a key.
    pub(crate) fn checkpoint(&mut self) -> Result<(), AuditError> {
        let Some(signer) = &self.signer else {
            return Ok(());
        };
        let lock = self.turn()?;
        let _turn = Turn(&lock);
        match Head::read(&self.head, &self.folder)? {
            Some(head) => signer.checkpoint(&self.folder, head.seq, &hex(&head.hash)),
            // That there is a key is signed as well: without it, an empty folder would pass for a log
            // in which nothing has been written yet.
            None => signer.checkpoint(&self.folder, 0, &hex(&GENESIS)),
        }
    }

    /// Removes the oldest segments beyond what is kept; never the one that is written.
    pub fn prune(&mut self, keep: &Retention) -> Result<Vec<Segment>, AuditError> {
        let lock = self.turn()?;
        let _turn = Turn(&lock);
        let mut head = self.catch_up()?;
        if head.segment == 0 {
            return Ok(Vec::new());
        }
        self.prune_locked(&mut head, keep)
    }

    fn prune_locked(
        &mut self,
        head: &mut Head,
        keep: &Retention,
    ) -> Result<Vec<Segment>, AuditError> {
        let old = prune::beyond(&self.folder.segments()?, head.segment, keep)?;
        let Some(last) = old.last() else {
            return Ok(Vec::new());
        };
        let (seq, hash) = prune::last_line(last)?;
        let anchor = Anchor {
            segment: last.number,
            seq,
            hash: hex(&hash),
        };
        // First in the chain, then gone: a crash between the two leaves more than was announced.
        self.write_own(head, &Event::Pruned(anchor))?;
        for segment in &old {
            std::fs::remove_file(&segment.path).map_err(AuditError::io(&segment.path))?;
        }
        Ok(old)
    }

    fn turn(&self) -> Result<File, AuditError> {
        let path = self.folder.lock();
        let lock = self.lock.try_clone().map_err(AuditError::io(&path))?;
        loop {
            match flock(&lock, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(lock),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(AuditError::io(&path)(errno.into())),
            }
        }
    }

    /// The true end of the chain: what the head says, and whole lines that a writer added and
    /// had no time to say so. A line that it did not finish is cut off.
    fn catch_up(&mut self) -> Result<Head, AuditError> {
        let Some(mut head) = Head::read(&self.head, &self.folder)? else {
            return match self.folder.segments()?.last() {
                None => Ok(Head::NEW),
                Some(segment) => self.begun(segment),
            };
        };
        let next = self.folder.segment(head.segment + 1);
        let length = self.activate(self.folder.segment(head.segment))?;
        if length < head.length {
            let path = self.folder.segment(head.segment).path;
            return Err(AuditError::changed(
                &path,
                format!(
                    "has {length} bytes where its last writer left {}",
                    head.length
                ),
            ));
        }
        let mut torn = 0;
        if length > head.length {
            torn += self.take_rest(&mut head, length)?;
        }
        if next.path.exists() {
            // A writer began it and went no further.
            head.segment = next.number;
            head.length = 0;
            let length = self.activate(next)?;
            torn += self.take_rest(&mut head, length)?;
            if head.length == 0 {
                let first = opened(head.segment);
                self.write_own(&mut head, &first)?;
            }
        }
        if torn > 0 {
            self.write_own(&mut head, &Event::Recovered { torn_bytes: torn })?;
        }
        Ok(head)
    }

    /// There is a segment and no head yet: only right where the very first writer was stopped.
    fn begun(&mut self, segment: &Segment) -> Result<Head, AuditError> {
        if segment.number != 1 {
            return Err(AuditError::changed(
                &self.folder.head(),
                "is gone, although the log is not new",
            ));
        }
        let length = self.activate(segment.clone())?;
        let mut head = Head {
            segment: 1,
            ..Head::NEW
        };
        let torn = self.take_rest(&mut head, length)?;
        if head.seq > 1 {
            return Err(AuditError::changed(
                &self.folder.head(),
                "is gone, although the log is not new",
            ));
        }
        if head.seq == 0 {
            self.write_own(&mut head, &opened(1))?;
        }
        if torn > 0 {
            self.write_own(&mut head, &Event::Recovered { torn_bytes: torn })?;
        }
        Ok(head)
    }

    /// Opens a segment, unless it is the open one; gives its length.
    fn activate(&mut self, segment: Segment) -> Result<u64, AuditError> {
        if self.active.as_ref().is_none_or(|(s, _)| *s != segment) {
            let file = Folder::open_private(&segment.path, OFlags::RDWR | OFlags::APPEND)?;
            self.active = Some((segment, file));
            self.born = None;
        }
        let (path, file) = self.open_segment()?;
        Ok(file.metadata().map_err(AuditError::io(path))?.len())
    }

    /// Whole lines after the head become part of it. Gives the bytes that were cut off.
    fn take_rest(&mut self, head: &mut Head, length: u64) -> Result<u64, AuditError> {
        let (path, file) = self.open_segment()?;
        let mut rest = vec![0; (length - head.length) as usize];
        file.read_exact_at(&mut rest, head.length)
            .map_err(AuditError::io(path))?;
        let mut at = 0;
        while let Some(end) = rest[at..].iter().position(|b| *b == b'\n') {
            head.hash =
                line::check(&rest[at..at + end], head.seq + 1, &head.hash).map_err(|_| {
                    AuditError::changed(
                        path,
                        format!(
                            "what follows line {} of the log is not of its chain",
                            head.seq
                        ),
                    )
                })?;
            head.seq += 1;
            at += end + 1;
        }
        head.length += at as u64;
        let torn = (rest.len() - at) as u64;
        if torn > 0 {
            file.set_len(head.length).map_err(AuditError::io(path))?;
        }
        Ok(torn)
    }

    fn open_segment(&self) -> Result<(&Path, &File), AuditError> {
        self.active
            .as_ref()
            .map(|(segment, file)| (segment.path.as_path(), file))
            .ok_or_else(|| AuditError::changed(self.folder.path(), "has no segment"))
    }

    /// Begins the next segment where it is time to.
    fn rotate(&mut self, mut head: Head) -> Result<Head, AuditError> {
        if head.segment > 0 {
            let (_, file) = self.open_segment()?;
            let now = SystemTime::now();
            let born = self.born.or_else(|| first_time(file)).unwrap_or(now);
            self.born = Some(born);
            let age = now.duration_since(born).unwrap_or_default();
            if head.length < self.retention.segment_bytes && age < self.retention.segment_age {
                return Ok(head);
            }
        }
        let next = self.folder.segment(head.segment + 1);
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let file = Folder::open_private(&next.path, flags)?;
        head.segment = next.number;
        head.length = 0;
        self.active = Some((next, file));
        self.born = None;
        let first = opened(head.segment);
        self.write_own(&mut head, &first)?;
        if let Some(signer) = &self.signer {
            signer.checkpoint(&self.folder, head.seq, &hex(&head.hash))?;
        }
        let keep = self.retention;
        self.prune_locked(&mut head, &keep)?;
        Ok(head)
    }

    fn write_own(&mut self, head: &mut Head, event: &Event) -> Result<(), AuditError> {
        let mut batch = Batch::default();
        batch.add(|out| clock::body(out, None, None, event))?;
        self.write(head, &batch)
    }

    fn write(&mut self, head: &mut Head, batch: &Batch) -> Result<(), AuditError> {
        let (path, file) = self.open_segment()?;
        let mut lines = Vec::with_capacity(batch.bytes() + 128 * batch.ends.len());
        let (mut seq, mut hash) = (head.seq, head.hash);
        for body in batch.bodies() {
            seq += 1;
            hash = line::write(&mut lines, seq, body, &hash);
        }
        let mut writer: &File = file;
        if let Err(error) = writer.write_all(&lines) {
            // Half a line is worse than none. Should this fail as well, the next writer does it.
            file.set_len(head.length).unwrap_or(());
            return Err(AuditError::io(path)(error));
        }
        *head = Head {
            segment: head.segment,
            length: head.length + lines.len() as u64,
            seq,
            hash,
        };
        head.write(&self.head, &self.folder)
    }
}

fn opened(segment: u64) -> Event {
    Event::SegmentOpened {
        segment,
        format: FORMAT,
    }
}

/// When a segment was begun, by its first line.
fn first_time(file: &File) -> Option<SystemTime> {
    let mut start = [0; 512];
    let length = file.read_at(&mut start, 0).ok()?;
    let text = String::from_utf8_lossy(&start[..length]);
    let digits = text.split_once("\"unix_us\":")?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let micros = digits[..end].parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_micros(micros))
}
