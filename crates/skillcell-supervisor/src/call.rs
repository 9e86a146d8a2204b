//! Runs a call and gives its envelope, whatever happens.

use crate::door;
use crate::observe::{Observer, OwnFolders, Program, World};
use crate::program::{self, Input, Purpose};
use crate::watch::{self, End};
use crate::{
    CallError, Interaction, Known, Outcome, Ready, Request, collect, outcome, paths, prepare,
    record,
};
use rustix::fd::AsFd;
use skillcell_audit::{CallEnded, Event, RecordFailed, Recorder, Summary};
use skillcell_backend::{Begin, Facts, Launch, Layout, Network, Running, for_level};
use skillcell_core::{
    AuditRef, Denial, Envelope, HostFacts, Isolation, Reason, RunId, SkillRef, Status, Usage,
};
use skillcell_egress::Broker;
use skillcell_plan::{FileAccess, Plan};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Makes one call. The process must be single-threaded.
pub fn run(request: &Request, host: HostFacts, ui: &dyn Interaction) -> Outcome {
    let started = Instant::now();
    let run_id = new_run_id();
    let mut known = Known::default();
    let mut recorder = None;
    let done = prepare::prepare(request, host, &mut known)
        .and_then(|ready| execute(request, ready, &run_id, ui, &mut recorder));
    let mut envelope = match done {
        Ok(envelope) => envelope,
        Err(error) => {
            let audit = match recorder {
                Some(recorder) => record::abandon(&recorder, &error),
                None => record::refuse(request, &known, &run_id, &error),
            };
            failed(&run_id, known.skill, &error, audit)
        }
    };
    if envelope.usage.wall_ms == 0 {
        envelope.usage.wall_ms = started.elapsed().as_millis() as u64;
    }
    envelope
}

pub(crate) fn failed(
    run_id: &RunId,
    skill: SkillRef,
    error: &CallError,
    audit: AuditRef,
) -> Outcome {
    Envelope {
        run_id: run_id.clone(),
        skill,
        status: error.status(),
        result: None,
        error: Some(error.body()),
        denials: error.denials(),
        enforcement: Vec::new(),
        usage: Usage::default(),
        audit,
        output: None,
    }
}

fn execute(
    request: &Request,
    mut ready: Ready,
    run_id: &RunId,
    ui: &dyn Interaction,
    started: &mut Option<Arc<Recorder>>,
) -> Result<Outcome, CallError> {
    if ready.plan.trusted {
        ui.warn(&format!(
            "TRUSTED: `{}` runs at level {} because of --trust, below what policy asks for",
            ready.bundle.manifest.id, ready.plan.isolation
        ));
    }
    let signals =
        skillcell_linux::termination_signals().map_err(skillcell_backend::BackendError::Linux)?;
    let deps = prepare::dependencies(request, &ready, ui, Some(signals.as_fd()))?;
    let backend = for_level(ready.plan.isolation).ok_or(CallError::Refusal(
        skillcell_plan::Refusal::BackendUnavailable {
            level: ready.plan.isolation,
            by: skillcell_plan::Source::Manifest,
        },
    ))?;
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
    let moves = output_moves(&ready.plan, &layout);
    if let Some(params) = &mut ready.params {
        paths::redirect(params, &moves);
    }
    let launch = program::launch(&Input {
        manifest: &ready.bundle.manifest,
        interpreter: &ready.interpreter,
        layout: &layout,
        purpose: Purpose::Call,
        params: ready.params.as_ref(),
        args: &request.args,
        env: &ready.env,
        bytecode: ready.bytecode,
    })?;
    let world = world(&ready.plan, &layout, &moves);
    let own = own_folders(&ready, &layout, trees.clone());
    let first = first_program(&launch);
    let prepared = backend.prepare(&ready.plan, &facts, layout, launch)?;
    let made = prepared.make()?;
    // From here on while the cell's init mounts: what has to be there before the skill starts.
    let opening = record::Opening {
        request,
        plan: &mut ready.plan,
        env: &ready.env,
        door: &door,
        terms: &ready.ceiling.log,
        run_id,
        template: None,
    };
    let recorder = Arc::new(record::open(opening, ui)?);
    *started = Some(Arc::clone(&recorder));
    let observer = match made.notifies() {
        true => Some(Observer::start().map_err(CallError::Watch)?),
        false => None,
    };
    let mut running = made.start()?;
    let (broker, view) = door.open(&mut running, &recorder)?.unzip();
    let limits = ready.plan.limits.clone();
    let terms = watch::Terms {
        limits: &limits,
        world,
        door: view,
        level: ready.plan.audit,
        own,
        first,
        recorder: Arc::clone(&recorder),
        observer,
        signals: signals.as_fd(),
        at_rest: None,
        ending: watch::Ending::Complete,
        ui,
    };
    let scene = Scene {
        request,
        ready,
        run_id,
        recorder: &recorder,
        moves: &moves,
        before: Vec::new(),
    };
    conclude(scene, running, broker, terms).map(|(outcome, _)| outcome)
}

/// What a cell's end is judged by.
pub(crate) struct Scene<'a> {
    pub(crate) request: &'a Request,
    pub(crate) ready: Ready,
    pub(crate) run_id: &'a RunId,
    pub(crate) recorder: &'a Recorder,
    pub(crate) moves: &'a [(PathBuf, PathBuf)],
    /// What was denied before the cell was this call's.
    pub(crate) before: Vec<Denial>,
}

/// A cell that was told to end.
pub(crate) struct Left {
    pub(crate) running: Running,
    pub(crate) observer: Option<Observer>,
}

impl Left {
    /// Waits until it is gone.
    pub(crate) fn bury(mut self) {
        // Whatever keeps it from ending: it is dropped, which kills and waits again.
        self.running.cell.reap().unwrap_or(());
        drop(self.observer.take());
    }
}

/// Watches a cell to its end and makes an envelope of it. A cell whose end is not waited for comes
/// back.
pub(crate) fn conclude(
    scene: Scene<'_>,
    mut running: Running,
    broker: Option<Broker>,
    terms: watch::Terms<'_>,
) -> Result<(Outcome, Option<Left>), CallError> {
    let Scene {
        request,
        mut ready,
        run_id,
        recorder,
        moves,
        before,
    } = scene;
    let ending = terms.ending;
    let mut observed = watch::watch(&mut running, terms).map_err(|e| CallError::Watch(e.into()))?;
    let report = broker.map(Broker::finish).unwrap_or_default();
    for denial in before {
        observed.denials.add(denial);
    }
    if let End::NotExecuted(error) = &observed.end {
        return Err(CallError::Backend(skillcell_backend::BackendError::Linux(
            error.clone(),
        )));
    }
    let mut verdict = outcome::judge(&ready, &observed, request);
    if verdict.status == Status::Ok {
        match collect::carry_out(
            &running.outputs,
            &running.cell.staging,
            &running.shown,
            ready.plan.limits.scratch.bytes(),
            &mut observed.denials,
        ) {
            Ok(()) => outcome::weigh_denials(&mut verdict, &ready, &observed, request),
            // The skill ran: what it did is told and recorded, whatever became of its files.
            Err(error) => {
                verdict.status = error.status();
                verdict.error = Some(error.body());
            }
        }
    }
    let left = match ending {
        watch::Ending::Complete => {
            drop(running); // scratch and cgroup go before anybody is told
            None
        }
        watch::Ending::Answered => Some(Left {
            running,
            observer: observed.left.take(),
        }),
    };

    let mut denials = ready.plan.denials.clone();
    denials.extend(observed.denials.into_vec());
    denials.extend(report.denials);
    for denial in &mut denials {
        record::clean(denial, recorder.redactor());
    }
    let usage = Usage {
        wall_ms: observed.wall.as_millis() as u64,
        cpu_ms: observed.cpu_millis,
        peak_memory_bytes: observed.peak_memory,
        bytes_out: report.bytes_out,
        bytes_in: report.bytes_in,
    };
    if report.dropped > 0 {
        let count = report.dropped;
        unless_ended(
            &observed.end,
            recorder.note(None, &Event::EgressDropped { count }),
        )?;
    }
    if verdict.status == Status::LimitExceeded
        && let Some(error) = &verdict.error
    {
        recorder.note(None, &Event::LimitReached { reason: error.code })?;
    }
    let ended = Event::CallEnded(Box::new(CallEnded {
        status: verdict.status,
        reason: verdict.error.as_ref().map(|e| e.code),
        denials: denials.clone(),
        usage,
        summary: Summary {
            hosts: report.hosts,
            connections: report.connections,
            denials: denials.iter().map(|d| d.count).sum(),
            ..observed.summary
        },
    }));
    let audit = match record::close(recorder, &ended, &mut ready.plan.receipt) {
        Ok(audit) => audit,
        // Said already, with the reason: what is in the log is whole, and ends before the end.
        Err(_) if matches!(observed.end, End::Unrecorded) => AuditRef::default(),
        Err(error) => return Err(error.into()),
    };
    let outcome = Envelope {
        run_id: run_id.clone(),
        skill: ready.plan.skill.clone(),
        status: verdict.status,
        result: verdict.result.map(|r| outcome::moved_back(r, moves)),
        error: verdict.error,
        denials,
        enforcement: ready.plan.receipt.clone(),
        usage,
        audit,
        output: Some(outcome::captured(&observed.stdout, &observed.stderr)),
    };
    Ok((outcome, left))
}

/// What the record says of the payload's own start.
pub(crate) fn first_program(launch: &Launch) -> Option<Program> {
    match &launch.begin {
        Begin::Program(program) => Some(Program {
            path: program.program.as_os_str().as_bytes().to_vec(),
            argv: program.argv.iter().map(|a| a.to_bytes().to_vec()).collect(),
        }),
        Begin::Resume { .. } => None,
    }
}

/// A record that has failed already is told by the verdict.
fn unless_ended(end: &End, done: Result<(), RecordFailed>) -> Result<(), RecordFailed> {
    match end {
        End::Unrecorded => Ok(()),
        _ => done,
    }
}

/// Where the skill may read without that being worth an event.
pub(crate) fn own_folders(ready: &Ready, layout: &Layout, trees: Vec<PathBuf>) -> OwnFolders {
    let mut bundle = vec![layout.skill.clone()];
    if ready.plan.isolation != Isolation::Sandbox {
        bundle.push(ready.bundle.root.clone());
    }
    OwnFolders::new(bundle, layout.deps.iter().cloned().chain(trees))
}

/// At the process level: where each output folder is staged.
fn output_moves(plan: &Plan, layout: &Layout) -> Vec<(PathBuf, PathBuf)> {
    if layout.host_scratch.is_none() || !plan.files.iter().any(|f| f.access == FileAccess::Write) {
        return Vec::new();
    }
    skillcell_backend::staged_outputs(plan, layout)
}

fn world(plan: &Plan, layout: &Layout, moves: &[(PathBuf, PathBuf)]) -> World {
    if plan.isolation == Isolation::Sandbox {
        return World::Namespaces;
    }
    let mut writable = vec![layout.scratch.clone(), layout.tmp.clone()];
    // The staging folders, whether a whole one or the parent of a file.
    writable.extend(moves.iter().map(|(_, to)| to.clone()));
    writable.extend(
        moves
            .iter()
            .filter_map(|(_, to)| to.parent().map(PathBuf::from)),
    );
    World::Bare { writable }
}

pub(crate) fn new_run_id() -> RunId {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as u64);
    let mut random = [0u8; 8];
    // The kernel's generator; should it fail, time and process number still tell runs apart.
    if std::fs::File::open("/dev/urandom")
        .and_then(|mut f| std::io::Read::read_exact(&mut f, &mut random))
        .is_err()
    {
        random = (u64::from(std::process::id()) << 32 | millis & 0xffff_ffff).to_le_bytes();
    }
    RunId::new(millis, u64::from_le_bytes(random))
}

/// The reason that a limit leads to, for messages.
pub(crate) fn limit_words(reason: Reason, plan: &Plan) -> (String, String) {
    let limits = &plan.limits;
    match reason {
        Reason::TimeoutExceeded => (
            format!("the skill did not finish within {}", limits.timeout),
            "raise it with --timeout, or `resources.timeout` in its security_policy".into(),
        ),
        Reason::MemoryExceeded => (
            format!("the skill needed more than {} of memory", limits.memory),
            "raise it with --memory, or `resources.memory` in its security_policy".into(),
        ),
        Reason::ProcessesExceeded => (
            format!(
                "the skill needed more than {} processes and threads",
                limits.processes
            ),
            "raise `resources.processes` in its security_policy".into(),
        ),
        Reason::ScratchExceeded => (
            format!(
                "the skill filled its scratch of {} and {} files",
                limits.scratch, limits.scratch_inodes
            ),
            "raise `filesystem.scratch` in its security_policy".into(),
        ),
        _ => (
            format!("the skill gave more than {} of output", limits.output),
            "raise `resources.output` in its security_policy".into(),
        ),
    }
}
