//! The record of one call, from its supervisor's threads into the log.

use crate::log::{Batch, Log};
use crate::record::Task;
use crate::{AuditError, Event, Redactor, Text, clock};
use skillcell_core::{AuditRef, RunId};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may wait before they are written.
const FULL: usize = 64 << 10;
/// How long an event may wait, once another one comes or somebody asks.
const LATE: Duration = Duration::from_millis(50);

/// Takes events of one call. Decisions are written before they are answered; the rest may wait a
/// moment for company. A failure stays: from then on every event fails.
#[derive(Debug)]
pub struct Recorder {
    redactor: Redactor,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: Log,
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
    pub fn new(log: Log, run_id: RunId, redactor: Redactor) -> Recorder {
        Recorder {
            redactor,
            inner: Mutex::new(Inner {
                log,
                run_id,
                n: 0,
                batch: Batch::default(),
                since: Instant::now(),
                head: None,
                failed: None,
            }),
        }
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
        inner.add(task, event)?;
        if inner.batch.bytes() >= FULL || inner.since.elapsed() >= LATE {
            inner.write()?;
        }
        Ok(())
    }

    /// Records an event, and everything before it, before the skill can be told of it.
    pub fn decide(&self, task: Option<Task>, event: &Event) -> Result<(), RecordFailed> {
        let mut inner = self.inner();
        inner.add(task, event)?;
        inner.write()
    }

    /// Writes what waits.
    pub fn flush(&self) -> Result<(), RecordFailed> {
        self.inner().write()
    }

    /// Whether something waits to be written.
    pub fn waits(&self) -> bool {
        !self.inner().batch.is_empty()
    }

    /// Writes the last event, signs, and says where all of it is.
    pub fn finish(&self, event: &Event) -> Result<AuditRef, RecordFailed> {
        let mut inner = self.inner();
        inner.add(None, event)?;
        inner.write()?;
        if let Err(error) = inner.log.checkpoint() {
            return Err(inner.fail(&error));
        }
        Ok(AuditRef {
            log: inner.log.path().map(|p| p.display().to_string()),
            events: inner.n,
            head: inner.head.clone(),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, task: Option<Task>, event: &Event) -> Result<(), RecordFailed> {
        self.check()?;
        if self.batch.is_empty() {
            self.since = Instant::now();
        }
        let (run_id, n) = (&self.run_id, self.n + 1);
        match self
            .batch
            .add(|out| clock::body(out, Some((run_id, n)), task, event))
        {
            Ok(()) => self.n = n,
            Err(error) => return Err(self.fail(&error)),
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), RecordFailed> {
        self.check()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.log.append(&self.batch) {
            Ok(hash) => {
                self.head = Some(crate::line::hex(&hash));
                self.batch.clear();
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn check(&self) -> Result<(), RecordFailed> {
        match &self.failed {
            Some(message) => Err(RecordFailed(message.clone())),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: &AuditError) -> RecordFailed {
        let message = format!("{error}; {}", error.hint());
        self.failed = Some(message.clone());
        RecordFailed(message)
    }
}
