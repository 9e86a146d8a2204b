//! A call in a cell that was waiting for it.

use super::keeper::{Keeper, Waiting};
use super::wire::Loaded;
use crate::call::{self, Left, Scene};
use crate::observe::{Observer, World};
use crate::program::Interpreter;
use crate::{CallError, Interaction, Outcome, Ready, Request, door, program, record, watch};
use rustix::fd::{BorrowedFd, OwnedFd};
use skillcell_audit::{Event, RecordFailed, Recorder, Task};
use skillcell_backend::{Facts, Network, for_level};
use skillcell_core::{AuditLevel, RunId};
use skillcell_plan::Refusal;
use std::sync::Arc;

/// What pipes hold: as much is written without anybody reading.
const PIPE: usize = 64 << 10;

/// The call that claims it.
pub(super) struct Claim<'a> {
    pub(super) request: &'a Request,
    pub(super) ready: Ready,
    pub(super) run_id: &'a RunId,
    pub(super) ui: &'a dyn Interaction,
    pub(super) cancel: BorrowedFd<'a>,
}

/// Makes the call. The cell was made under this very plan, and its template's denials are told with
/// the call's own.
pub(super) fn run(
    claim: Claim<'_>,
    claimed: (Waiting, Arc<Loaded>),
    keeper: &Arc<Keeper>,
    started: &mut Option<Arc<Recorder>>,
) -> Result<Outcome, CallError> {
    let Claim {
        request,
        mut ready,
        run_id,
        ui,
        cancel,
    } = claim;
    let (waiting, loaded) = claimed;
    let mut running = waiting.running;
    let mut claimed = Claimed {
        number: waiting.number,
        left: None,
        keeper,
    };
    let backend =
        for_level(ready.plan.isolation).ok_or(CallError::Refusal(Refusal::BackendUnavailable {
            level: ready.plan.isolation,
            by: skillcell_plan::Source::Manifest,
        }))?;
    let trees = ready.interpreter.trees();
    let facts = Facts {
        run_id: run_id.as_str(),
        host: &ready.host,
        bundle: &ready.bundle.root,
        deps: &loaded.deps,
        runtime: &trees,
        network: &Network::Closed,
    };
    let layout = backend.layout(&facts)?;
    let door = door::prepare(&ready.plan, &mut ready.env, &facts, &layout)?;
    let own = call::own_folders(&ready, &layout, trees.clone());
    let recorder = Arc::new(record::open(
        record::Opening {
            request,
            plan: &mut ready.plan,
            env: &ready.env,
            door: &door,
            terms: &ready.ceiling.log,
            run_id,
            template: Some(&loaded.run_id),
        },
        ui,
    )?);
    *started = Some(Arc::clone(&recorder));
    let observer = Observer::start().map_err(CallError::Watch)?;
    let (broker, view) = door.open(&mut running, &recorder)?.unzip();
    note_start(&recorder, &ready, waiting.payload)?;
    let params = ready.params.take().unwrap_or_else(|| serde_json::json!({}));
    send(waiting.params, program::message(&params))?;
    let limits = ready.plan.limits.clone();
    let terms = watch::Terms {
        limits: &limits,
        world: World::Namespaces,
        door: view,
        level: ready.plan.audit,
        own,
        first: None,
        recorder: Arc::clone(&recorder),
        observer: Some(observer),
        signals: cancel,
        ui,
        at_rest: None,
        ending: watch::Ending::Answered,
    };
    let scene = Scene {
        request,
        ready,
        run_id,
        recorder: &recorder,
        moves: &[],
        before: loaded.denials.clone(),
    };
    let (outcome, left) = call::conclude(scene, running, broker, terms)?;
    claimed.left = left;
    Ok(outcome)
}

/// Goes back to its keeper, whatever became of the call.
struct Claimed<'a> {
    number: u64,
    left: Option<Left>,
    keeper: &'a Arc<Keeper>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.keeper.give_back(self.number, self.left.take());
    }
}

/// It was started before the call, and is the call's from here on.
fn note_start(
    recorder: &Recorder,
    ready: &Ready,
    payload: Option<Task>,
) -> Result<(), RecordFailed> {
    if ready.plan.audit < AuditLevel::Security {
        return Ok(());
    }
    let Interpreter::Python(python) = &ready.interpreter else {
        return Ok(());
    };
    let program = recorder.text(python.executable.as_os_str().as_encoded_bytes());
    let event = Event::ProcessStarted {
        argv: vec![program.clone()],
        program,
        argc: 1,
    };
    recorder.note(payload, &event)
}

/// Without waiting for the runner: it reads until it has all, but a skill may be in its place.
fn send(pipe: OwnedFd, message: Vec<u8>) -> Result<(), CallError> {
    let message_length = message.len();
    let write = move || {
        let mut rest = &message[..];
        while !rest.is_empty() {
            match rustix::io::write(&pipe, rest) {
                Ok(n) => rest = &rest[n..],
                Err(rustix::io::Errno::INTR) => {}
                // Its reader is gone, which the watch sees as well.
                Err(_) => return,
            }
        }
    };
    if message_length <= PIPE {
        write();
        return Ok(());
    }
    let spawned = std::thread::Builder::new()
        .name("params".into())
        .spawn(write);
    spawned.map(drop).map_err(CallError::Watch)
}
