//! The engine that has cells waiting, and starts a process only for calls that can't use one.

use crate::api::Call;
use crate::cancel::Cancel;
use crate::cold::ColdEngine;
use crate::engine::{Busy, Engine, EngineMetrics, Metric, MetricKind};
use rustix::fd::AsFd;
use skillcell_core::Status;
use skillcell_supervisor::{Caller, Cold, Interaction, Outcome, Pool, Request};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Variables that this program obeys, by name and by beginning: what it finds and where it writes
/// depends on them. A call whose caller has others than the daemon is made in a process that has
/// the caller's.
const OBEYED: [&str; 6] = [
    "HOME",
    "PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "TMPDIR",
    "NETRC",
];
const OBEYED_FAMILIES: [&str; 9] = [
    "SKILLCELL_",
    "XDG_",
    "PIP_",
    "UV_",
    "SSL_",
    "REQUESTS_",
    "CURL_",
    "RUSTLS_",
    "LD_",
];
const OBEYED_ENDS: [&str; 2] = ["_proxy", "_PROXY"];

pub struct WarmEngine {
    pool: Pool,
    cold: ColdEngine,
    own: BTreeMap<OsString, OsString>,
}

impl WarmEngine {
    pub fn new(pool: Pool, cold: ColdEngine) -> WarmEngine {
        WarmEngine {
            pool,
            cold,
            own: obeyed(std::env::vars_os()),
        }
    }

    fn warm(&self, call: &Call, ui: &dyn Interaction, cancel: &Cancel) -> Result<Outcome, Cold> {
        let given = call.environment.as_ref();
        let same = given.is_none_or(|given| {
            let given = given.iter().map(|(n, v)| (n.clone(), v.clone()));
            obeyed(given) == self.own
        });
        if !same {
            let why = Cold::Kind("the caller has other settings than the daemon");
            self.pool.note_cold(&why);
            return Err(why);
        }
        let text =
            |(n, v): (&OsString, &OsString)| Some((n.to_str()?.to_owned(), v.to_str()?.to_owned()));
        let request = Request {
            caller: Caller {
                variables: given.map(|given| given.iter().filter_map(text).collect()),
                folder: call.folder.clone(),
            },
            ..call.request.clone()
        };
        let mut outcome = self.pool.run(&request, ui, cancel.as_fd())?;
        if !call.show_output && outcome.status == Status::Ok {
            outcome.output = None;
        }
        Ok(outcome)
    }
}

fn obeyed(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    all.filter(|(name, _)| {
        name.to_str().is_none_or(|name| {
            OBEYED.contains(&name)
                || OBEYED_FAMILIES
                    .iter()
                    .any(|family| name.starts_with(family))
                || OBEYED_ENDS.iter().any(|end| name.ends_with(end))
        })
    })
    .collect()
}

impl Engine for WarmEngine {
    fn run(&self, call: &Call, ui: &dyn Interaction, cancel: &Cancel) -> Result<Outcome, Busy> {
        match self.warm(call, ui, cancel) {
            Ok(outcome) => Ok(outcome),
            // Nothing of it has happened yet.
            Err(_) => self.cold.run(call, ui, cancel),
        }
    }

    fn metrics(&self) -> EngineMetrics {
        let counts = self.pool.counts();
        let metric = |name, help, kind, value: u64| Metric {
            name,
            help,
            kind,
            label: None,
            value: value as f64,
        };
        let mut metrics = self.cold.metrics();
        metrics.0.extend([
            metric(
                "warm_calls_total",
                "Calls made in a cell that was waiting.",
                MetricKind::Counter,
                counts.warm_calls,
            ),
            metric(
                "templates",
                "Skills that are loaded, or being loaded.",
                MetricKind::Gauge,
                counts.templates,
            ),
            metric(
                "templates_evicted_total",
                "Loaded skills that were let go.",
                MetricKind::Counter,
                counts.evicted,
            ),
            metric(
                "waiting_cells",
                "Cells that wait for a call.",
                MetricKind::Gauge,
                counts.waiting,
            ),
            metric(
                "image_bytes",
                "Memory of all loaded skills' images.",
                MetricKind::Gauge,
                counts.image_bytes,
            ),
        ]);
        for (why, count) in counts.cold_calls {
            metrics.0.push(Metric {
                label: Some(("reason", why)),
                ..metric(
                    "cold_calls_total",
                    "Calls that no waiting cell could serve.",
                    MetricKind::Counter,
                    count,
                )
            });
        }
        metrics
    }

    fn drain(&self) {
        self.cold.drain();
    }
}
