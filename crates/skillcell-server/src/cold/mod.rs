//! The engine that starts this same program for each call.
//!
//! A call is made by the code, in the environment and in the folder that `skillcell run` would have,
//! so its results, errors and exit codes are the same by construction. What the daemon adds is how
//! many run at once, and their end when nobody waits any more.

mod order;
mod process;

pub use order::{Job, Order, OrderError};

use crate::api::{ApiCode, ApiError, Call, RunRequest};
use crate::cancel::Cancel;
use crate::engine::{Busy, Engine, EngineMetrics, Metric, MetricKind};
use crate::failed::failed;
use crate::gate::{Gate, TurnedAway};
use crate::line::Line;
use process::Process;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use serde_json::value::RawValue;
use skillcell_core::{Reason, Status};
use skillcell_supervisor::{Interaction, Outcome, Quiet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a client that finds no place should wait.
const RETRY: Duration = Duration::from_secs(1);

/// Starts workers: this program again, for one answer each.
#[derive(Debug)]
pub struct Workers {
    program: OwnedFd,
    gate: Gate,
    started: AtomicU64,
}

impl Workers {
    /// At most `running` at once, and `waiting` that wait for a place.
    pub fn new(running: usize, waiting: usize) -> rustix::io::Result<Workers> {
        Ok(Workers {
            // Held open: an upgrade puts another file at the path.
            program: open(
                "/proc/self/exe",
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
            gate: Gate::new(running, waiting),
            started: AtomicU64::new(0),
        })
    }

    /// What `skillcell explain --json` prints.
    pub fn explain(&self, call: &Call, cancel: &Cancel) -> Result<Box<RawValue>, ApiError> {
        let request = RunRequest::from_call(call)
            .map_err(|e| ApiError::new(ApiCode::BadRequest, e.to_string()))?;
        self.ask(&Job::Explain(Box::new(request)), call, cancel)
    }

    /// The skills of the daemon's own search path.
    pub fn skills(&self, cancel: &Cancel) -> Result<Box<RawValue>, ApiError> {
        self.ask(&Job::Skills, &Call::default(), cancel)
    }

    fn ask(&self, job: &Job, call: &Call, cancel: &Cancel) -> Result<Box<RawValue>, ApiError> {
        let _permit = self.gate.enter("", cancel).map_err(|_| busy(RETRY))?;
        let end = self.work(job, call, &Quiet, cancel).map_err(|e| {
            ApiError::new(ApiCode::Internal, format!("a worker can't be started: {e}"))
        })?;
        end.answer.ok_or_else(|| {
            ApiError::new(
                ApiCode::Internal,
                format!("the worker ended with {} and gave no answer", end.status),
            )
        })
    }

    fn work(
        &self,
        job: &Job,
        call: &Call,
        ui: &dyn Interaction,
        cancel: &Cancel,
    ) -> std::io::Result<WorkEnd> {
        let order = Order::new(job);
        let mut process = Process::start(&self.program, call, order)?;
        self.started.fetch_add(1, Ordering::Relaxed);
        let mut answer = None;
        let status = process.converse(cancel, |bytes| {
            let Ok(line) = serde_json::from_slice::<Line<'_>>(bytes) else {
                return;
            };
            match line.envelope {
                Some(raw) if line.event == "end" => answer = Some(raw.to_owned()),
                _ => line.tell(ui),
            }
        })?;
        Ok(WorkEnd { answer, status })
    }
}

struct WorkEnd {
    answer: Option<Box<RawValue>>,
    status: std::process::ExitStatus,
}

/// The answer to a client that finds no place.
pub(crate) fn busy(retry_after: Duration) -> ApiError {
    ApiError::new(
        ApiCode::Busy,
        "the daemon has as many calls as it takes; nothing was run",
    )
    .hint(format!(
        "ask again in {} s, or raise --max-running or --max-waiting of `skillcell serve`",
        retry_after.as_secs().max(1)
    ))
}

/// Makes each call in a process of its own.
#[derive(Debug)]
pub struct ColdEngine {
    workers: Arc<Workers>,
}

impl ColdEngine {
    pub fn new(workers: Arc<Workers>) -> ColdEngine {
        ColdEngine { workers }
    }
}

impl Engine for ColdEngine {
    fn run(&self, call: &Call, ui: &dyn Interaction, cancel: &Cancel) -> Result<Outcome, Busy> {
        let request = match RunRequest::from_call(call) {
            Ok(request) => request,
            Err(error) => {
                let message = error.to_string();
                return Ok(failed(Status::InvalidInput, Reason::InvalidUsage, message));
            }
        };
        let _permit = match self.workers.gate.enter(&call.request.skill, cancel) {
            Ok(permit) => permit,
            Err(TurnedAway::Busy) => return Err(Busy { retry_after: RETRY }),
            Err(TurnedAway::Cancelled) => {
                let message = "the call was ended while it waited for others; nothing was run";
                return Ok(failed(Status::InternalError, Reason::Internal, message));
            }
        };
        let job = Job::Run(Box::new(request));
        Ok(match self.workers.work(&job, call, ui, cancel) {
            Ok(end) => outcome(end, cancel),
            Err(error) => {
                let message = format!("the call can't be started: {error}");
                failed(Status::InternalError, Reason::Internal, message)
            }
        })
    }

    fn metrics(&self) -> EngineMetrics {
        let gate = &self.workers.gate;
        let metric = |name, help, kind, value| Metric {
            name,
            help,
            kind,
            label: None,
            value,
        };
        EngineMetrics(vec![
            metric(
                "workers_started_total",
                "Processes started for calls.",
                MetricKind::Counter,
                self.workers.started.load(Ordering::Relaxed) as f64,
            ),
            metric(
                "workers_running",
                "Calls that have a process now.",
                MetricKind::Gauge,
                gate.running() as f64,
            ),
            metric(
                "workers_waiting",
                "Calls that wait for a place.",
                MetricKind::Gauge,
                gate.waiting() as f64,
            ),
            metric(
                "workers_turned_away_total",
                "Calls that found no place to wait.",
                MetricKind::Counter,
                gate.turned_away() as f64,
            ),
        ])
    }

    fn drain(&self) {}
}

fn outcome(end: WorkEnd, cancel: &Cancel) -> Outcome {
    let read = end
        .answer
        .as_deref()
        .map(|raw| serde_json::from_str::<Outcome>(raw.get()));
    match read {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => {
            let message = format!("the envelope of the call can't be read: {error}");
            failed(Status::InternalError, Reason::Internal, message)
        }
        None if cancel.is_cancelled() => {
            let message = "the call was ended before its cell was made";
            failed(Status::InternalError, Reason::Internal, message)
        }
        None => {
            let message = format!(
                "the supervisor of the call ended with {} and gave no envelope",
                end.status
            );
            failed(Status::InternalError, Reason::Internal, message)
        }
    }
}
