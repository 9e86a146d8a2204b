//! Loads a skill once, in a cell of its own under the plan of its calls, and takes the image.

use crate::observe::Observer;
use crate::program::{self, Input, Purpose};
use crate::watch::{self, End};
use crate::{CallError, Interaction, Ready, Request, call, door, outcome, prepare, record};
use rustix::fd::{AsFd, OwnedFd};
use skillcell_audit::{CallEnded, Event};
use skillcell_backend::{Backend, BackendError, Facts, Layout, Network, Params, for_level};
use skillcell_core::{Denial, RunId, Status, Usage};
use skillcell_linux::image::{Expected, Image, Stage, Unfit};
use skillcell_linux::seccomp::AllowList;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that an image may have at most.
const LARGEST: u64 = 512 << 20;
/// The frame by which the runner says that it is at rest.
pub(super) const AT_REST: u8 = b'T';

/// A loaded skill, and everything that one more cell with it takes.
pub(super) struct Template {
    pub(super) ready: Ready,
    pub(super) deps: prepare::Dependencies,
    pub(super) backend: &'static dyn Backend,
    pub(super) trees: Vec<PathBuf>,
    pub(super) layout: Layout,
    pub(super) network: Network,
    pub(super) stage: Rc<Stage>,
    pub(super) allowed: AllowList,
    pub(super) denials: Vec<Denial>,
    pub(super) run_id: RunId,
}

/// Why there is none.
pub(super) enum NoTemplate {
    Unfit(Unfit),
    /// The skill itself failed, or the cell.
    Failed(String),
}

impl From<CallError> for NoTemplate {
    fn from(error: CallError) -> Self {
        NoTemplate::Failed(error.to_string())
    }
}

impl From<BackendError> for NoTemplate {
    fn from(error: BackendError) -> Self {
        CallError::from(error).into()
    }
}

/// The reading end holds the message already.
pub(super) fn pipe_with(message: &[u8]) -> Result<(OwnedFd, OwnedFd), BackendError> {
    let (reader, writer) = skillcell_linux::pipe_pair()?;
    let mut rest = message;
    while !rest.is_empty() {
        let n = rustix::io::write(&writer, rest).map_err(|_| BackendError::Pipe)?;
        rest = &rest[n..];
    }
    Ok((reader, writer))
}

pub(super) fn load(
    request: &Request,
    mut ready: Ready,
    ui: &dyn Interaction,
) -> Result<Template, NoTemplate> {
    let run_id = call::new_run_id();
    let signals = skillcell_linux::termination_signals().map_err(BackendError::Linux)?;
    let deps = prepare::dependencies(request, &ready, ui, Some(signals.as_fd()))?;
    let backend = for_level(ready.plan.isolation)
        .ok_or_else(|| NoTemplate::Failed("no such level of isolation".into()))?;
    let trees = ready.interpreter.trees();
    let mut facts = Facts {
        run_id: run_id.as_str(),
        host: &ready.host,
        bundle: &ready.bundle.root,
        deps: &deps.folders,
        runtime: &trees,
        network: &Network::Closed,
    };
    let layout = backend.layout(&facts)?;
    let door = door::prepare(&ready.plan, &mut ready.env, &facts, &layout)?;
    let network = door.network.clone();
    facts.network = &network;
    let mut launch = program::launch(&Input {
        manifest: &ready.bundle.manifest,
        interpreter: &ready.interpreter,
        layout: &layout,
        purpose: Purpose::Template,
        params: None,
        args: &[],
        env: &ready.env,
        bytecode: ready.bytecode,
    })?;
    let Params::Known(message) = &launch.params else {
        return Err(NoTemplate::Failed("nothing to load".into()));
    };
    // The writing end stays open: the runner waits at the other one.
    let (reader, _writer) = pipe_with(message)?;
    launch.params = Params::Later(reader);
    let first = call::first_program(&launch);
    let cwd = layout.scratch.clone();
    let own = call::own_folders(&ready, &layout, trees.clone());
    let prepared = backend.prepare(&ready.plan, &facts, layout.clone(), launch)?;
    let allowed = prepared.allowed();
    let made = prepared.make()?;
    let recorder = Arc::new(record::open(
        record::Opening {
            request,
            plan: &mut ready.plan,
            env: &ready.env,
            door: &door,
            terms: &ready.ceiling.log,
            run_id: &run_id,
            template: None,
        },
        ui,
    )?);
    let lost = |error: CallError| {
        record::abandon(&recorder, &error);
        NoTemplate::from(error)
    };
    let observer = match made.notifies() {
        true => Some(Observer::start().map_err(|e| lost(CallError::Watch(e)))?),
        false => None,
    };
    let mut running = made.start().map_err(|e| lost(e.into()))?;
    let (broker, view) = door.open(&mut running, &recorder).map_err(lost)?.unzip();
    let mut taken = None;
    let mut observed = {
        let mut take = |running: &skillcell_backend::Running| {
            let Some(scratch) = &running.cell.scratch else {
                return;
            };
            taken = Some(Image::take(&Expected {
                init: running.cell.pid,
                scratch,
                cwd: &cwd,
                largest: LARGEST,
            }));
        };
        let terms = watch::Terms {
            limits: &ready.plan.limits,
            world: crate::observe::World::Namespaces,
            door: view,
            level: ready.plan.audit,
            own,
            first,
            recorder: Arc::clone(&recorder),
            observer,
            signals: signals.as_fd(),
            ui,
            at_rest: Some(&mut take),
            ending: watch::Ending::Complete,
        };
        watch::watch(&mut running, terms).map_err(|e| lost(CallError::Watch(e.into())))?
    };
    let report = broker
        .map(skillcell_egress::Broker::finish)
        .unwrap_or_default();
    drop(running);
    let at_rest = observed.result.first() == Some(&AT_REST);
    let verdict = outcome::judge(&ready, &observed, request);
    let mut denials = std::mem::take(&mut observed.denials).into_vec();
    denials.extend(report.denials);
    for denial in &mut denials {
        record::clean(denial, recorder.redactor());
    }
    let ended = Event::CallEnded(Box::new(CallEnded {
        status: if at_rest { Status::Ok } else { verdict.status },
        reason: verdict.error.as_ref().filter(|_| !at_rest).map(|e| e.code),
        denials: denials.clone(),
        usage: Usage {
            wall_ms: observed.wall.as_millis() as u64,
            cpu_ms: observed.cpu_millis,
            peak_memory_bytes: observed.peak_memory,
            bytes_out: report.bytes_out,
            bytes_in: report.bytes_in,
        },
        summary: observed.summary.clone(),
    }));
    record::close(&recorder, &ended, &mut ready.plan.receipt).map_err(CallError::from)?;
    let image = match (taken, at_rest, &observed.end) {
        (Some(image), true, End::Exited(_)) => image.map_err(NoTemplate::Unfit)?,
        _ => {
            let why = verdict.error.map(|e| e.message);
            return Err(NoTemplate::Failed(
                why.unwrap_or_else(|| "it did not load".into()),
            ));
        }
    };
    let stage = Stage::new(image).map_err(|e| NoTemplate::Unfit(Unfit::Host(e)))?;
    Ok(Template {
        ready,
        deps,
        backend,
        trees,
        layout,
        network,
        stage: Rc::new(stage),
        allowed,
        denials,
        run_id,
    })
}
