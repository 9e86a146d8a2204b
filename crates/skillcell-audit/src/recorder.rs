//! The record of one call, from its supervisor's threads into the log.

use crate::log::{Batch, Log};
use crate::record::Task;
use crate::{AuditError, Event, Redactor, Text, clock};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use skillcell_core::{AuditRef, RunId};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait before they are written.
const FULL: usize = 64 << 10;
/// How long an event may wait, once another one comes or somebody asks.
const LATE: Duration = Duration::from_millis(50);

/// The most that one call may leave in the log.
const MOST: u64 = 1 << 30;

/// What becomes of a call whose record fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It ends.
    End,
    /// It goes on unrecorded, because the operator said so by name.
    GoOn,
}

/// Takes events of one call. Decisions are written before they are answered; the rest may wait a
/// moment for company. A failure stays: from then on every event fails.
#[derive(Debug)]
pub struct Recorder {
    redactor: Redactor,
    inner: Mutex<Inner>,
    /// Becomes readable with the first failure.
    alarm: OwnedFd,
    on_failure: OnFailure,
}

#[derive(Debug)]
struct Inner {
    /// `None` where the operator goes on without.
    log: Option<Log>,
    written: u64,
    run_id: RunId,
    n: u64,
    batch: Batch,
    since: Instant,
    head: Option<String>,
    failed: Option<String>,
}

/// The record has failed, in words for people; the first failure is told in full by the call.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the record can't be written: {0}")]
pub struct RecordFailed(pub String);

impl Recorder {
    /// Without a log nothing is recorded; only for calls that are to go on all the same.
    pub fn new(
        log: Option<Log>,
        run_id: RunId,
        redactor: Redactor,
        on_failure: OnFailure,
    ) -> Result<Recorder, RecordFailed> {
        let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| RecordFailed(e.to_string()))?;
        Ok(Recorder {
            alarm,
            on_failure,
            redactor,
            inner: Mutex::new(Inner {
                log,
                written: 0,
                run_id,
                n: 0,
                batch: Batch::default(),
                since: Instant::now(),
                head: None,
                failed: None,
            }),
        })
    }

    /// Readable once the record has failed and the call must end.
    pub fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Why the record failed and the call must end.
    pub fn failure(&self) -> Option<String> {
        match self.on_failure {
            OnFailure::End => self.inner().failed.clone(),
            OnFailure::GoOn => None,
        }
    }

    /// Why not everything is in the log, whatever was made of that.
    pub fn gap(&self) -> Option<String> {
        self.inner().failed.clone()
    }

    /// What a skill chose, fit for the log.
    pub fn text(&self, bytes: &[u8]) -> Text {
        self.redactor.text(bytes)
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Records an event that nobody waits for.
    pub fn note(&self, task: Option<Task>, event: &Event) -> Result<(), RecordFailed> {
        let mut inner = self.inner();
        let mut done = inner.add(task, event);
        if done.is_ok() && (inner.batch.bytes() >= FULL || inner.since.elapsed() >= LATE) {
            done = inner.write();
        }
        self.weigh(done)
    }

    /// Records an event, and everything before it, before the skill can be told of it.
    pub fn decide(&self, task: Option<Task>, event: &Event) -> Result<(), RecordFailed> {
        let mut inner = self.inner();
        let done = inner.add(task, event).and_then(|()| inner.write());
        self.weigh(done)
    }

    /// Writes what waits.
    pub fn flush(&self) -> Result<(), RecordFailed> {
        let done = self.inner().write();
        self.weigh(done)
    }

    /// Whether something waits to be written.
    pub fn waits(&self) -> bool {
        let inner = self.inner();
        inner.failed.is_none() && !inner.batch.is_empty()
    }

    /// Writes the last event, signs, and says where all of it is.
    pub fn finish(&self, event: &Event) -> Result<AuditRef, RecordFailed> {
        let mut inner = self.inner();
        let done = inner
            .add(None, event)
            .and_then(|()| inner.write())
            .and_then(|()| inner.sign());
        self.weigh(done)?;
        Ok(AuditRef {
            log: inner
                .log
                .as_ref()
                .and_then(Log::path)
                .map(|p| p.display().to_string()),
            events: inner.n,
            head: inner.head.clone(),
        })
    }

    fn weigh(&self, done: Result<(), RecordFailed>) -> Result<(), RecordFailed> {
        match (done, self.on_failure) {
            (Err(error), OnFailure::End) => {
                // Once is enough, and more do no harm.
                rustix::io::write(&self.alarm, &1u64.to_ne_bytes()).unwrap_or(0);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, task: Option<Task>, event: &Event) -> Result<(), RecordFailed> {
        self.check()?;
        if self.log.is_none() {
            return Ok(());
        }
        if self.batch.is_empty() {
            self.since = Instant::now();
        }
        let before = self.batch.bytes();
        let (run_id, n) = (&self.run_id, self.n + 1);
        let added = self
            .batch
            .add(|out| clock::body(out, Some((run_id, n)), task, event));
        if let Err(error) = added {
            return Err(self.fail(&error));
        }
        self.n = n;
        self.written += (self.batch.bytes() - before) as u64;
        if self.written > MOST {
            return Err(self.fail_with(format!(
                "one call may leave {} MiB in the log, and this one has",
                MOST >> 20
            )));
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), RecordFailed> {
        self.check()?;
        let Some(log) = self.log.as_mut().filter(|_| !self.batch.is_empty()) else {
            return Ok(());
        };
        match log.append(&self.batch) {
            Ok(hash) => {
                self.head = Some(crate::line::hex(&hash));
                self.batch.clear();
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn sign(&mut self) -> Result<(), RecordFailed> {
        match self.log.as_mut().map(Log::checkpoint) {
            Some(Err(error)) => Err(self.fail(&error)),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), RecordFailed> {
        match &self.failed {
            Some(message) => Err(RecordFailed(message.clone())),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: &AuditError) -> RecordFailed {
        self.fail_with(format!("{error}; {}", error.hint()))
    }

    fn fail_with(&mut self, message: String) -> RecordFailed {
        self.failed = Some(message.clone());
        RecordFailed(message)
    }
}
