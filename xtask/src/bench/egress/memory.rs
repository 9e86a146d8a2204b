//! Resident memory of the supervisor while one call makes many connections.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::json;

use super::network::SERVER;
use super::place::{Place, Stage, timings};
use super::servers::{CHECKPOINT, ECHO, Servers};

pub(super) const FEW: u32 = 1_000;
pub(super) const MANY: u32 = 10_000;
/// Beyond the events that are kept for the receipt: what still grows here is lost.
pub(super) const MORE: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Serialize)]
pub(super) struct Memory {
    pub(super) samples: Vec<Sample>,
}

#[derive(Serialize)]
pub(super) struct Sample {
    pub(super) connections: u32,
    pub(super) rss_kib: u64,
    pub(super) descriptors: usize,
}

pub(super) fn measure(stage: &Stage<'_>, servers: &Servers) -> Result<Memory> {
    let checkpoints = [FEW, MANY, MORE];
    let params = json!({
        "act": "connect", "host": SERVER, "port": ECHO, "count": MORE,
        "checkpoints": checkpoints, "checkpoint": CHECKPOINT,
    });
    let child = stage.start(Place::CellByCidr, &params)?;
    let pid = child.id();
    let mut samples = Vec::new();
    for connections in checkpoints {
        let Ok(mut waiting) = servers.checkpoints.recv_timeout(PATIENCE) else {
            timings(child)?;
            bail!("the call never came to connection {connections}");
        };
        samples.push(Sample {
            connections,
            rss_kib: rss_kib(pid)?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        });
        waiting.write_all(&[0])?;
    }
    timings(child)?;
    Ok(Memory { samples })
}

fn rss_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.context("the supervisor's memory can't be read")
}
