use crate::api::RunRequest;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// What a worker is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    Run(Box<RunRequest>),
    Explain(Box<RunRequest>),
    Skills,
}

/// What a worker reads from its standard input, to the end of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order<J = Job> {
    daemon: i32,
    pub job: J,
}

impl<'a> Order<&'a Job> {
    pub(super) fn new(job: &'a Job) -> Self {
        Order {
            daemon: getpid().as_raw_nonzero().get(),
            job,
        }
    }
}

/// Why a worker can't begin.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("standard input holds no order of a daemon: {0}")]
    Read(std::io::Error),
    #[error("the daemon that ordered this is gone")]
    Orphan,
    #[error("the kernel can't tell this process of the end of its daemon: {0}")]
    DeathSignal(rustix::io::Errno),
}

impl Order {
    /// Takes the order. From here on the end of the daemon ends this process as SIGTERM would.
    pub fn take() -> Result<Job, OrderError> {
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(OrderError::DeathSignal)?;
        let mut text = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut text)
            .map_err(OrderError::Read)?;
        let order: Order = serde_json::from_slice(&text).map_err(|e| OrderError::Read(e.into()))?;
        // It may have died before the signal was asked for.
        if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(order.daemon) {
            return Err(OrderError::Orphan);
        }
        Ok(order.job)
    }
}
