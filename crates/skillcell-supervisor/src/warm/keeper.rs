//! One template in the daemon: its nursery, and the cells that wait.

use super::key::Cold;
use super::sealed::Program;
use super::wire::{FromNursery, Loaded, Made, ToNursery};
use crate::call::Left;
use crate::{ParamsSource, Request};
use rustix::fd::OwnedFd;
use skillcell_audit::Task;
use skillcell_backend::{OutputFolder, Running};
use skillcell_core::Digest;
use skillcell_linux::cell::Cell;
use skillcell_linux::cgroup::{CellCgroup, CgroupFolder};
use skillcell_linux::channel::Channel;
use skillcell_linux::procfs;
use skillcell_linux::seccomp::AllowList;
use skillcell_plan::Plan;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a call waits for a cell that is being made.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a template that failed is not tried again.
const REST: Duration = Duration::from_secs(2);
/// How often it is looked at what waiting cells do, and how much CPU one may have used: what is done
/// before there are params takes a few milliseconds.
const INSPECTION: Duration = Duration::from_secs(1);
const RESTLESS_MILLIS: u64 = 500;

/// A cell that waits for its params.
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) running: Running,
    pub(super) params: OwnedFd,
    pub(super) payload: Option<Task>,
}

pub(super) struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    channel: Channel,
    undertaker: Sender<(u64, Option<Left>)>,
}

struct State {
    stage: Stage,
    last_stage: Instant,
    waiting: VecDeque<Waiting>,
    /// Asked for ahead of calls, and not there yet.
    ahead_of: BTreeSet<u64>,
    /// Claimed, and not gone yet.
    busy: usize,
    /// Cells to have ahead.
    ahead: usize,
    most: usize,
    next: u64,
    /// Cells for calls with files, by number, once they are made.
    ordered: BTreeMap<u64, Option<Result<Waiting, String>>>,
    last_claim: Instant,
    child: Option<Child>,
}

impl State {
    fn set(&mut self, stage: Stage) {
        self.stage = stage;
        self.last_stage = Instant::now();
    }
}

enum Stage {
    Loading,
    Loaded(Arc<Loaded>),
    Not(Cold),
}

impl Keeper {
    /// Starts the nursery; whether it can load the skill is known later.
    pub(super) fn start(
        program: &Program,
        request: &Request,
        most: usize,
    ) -> std::io::Result<Arc<Keeper>> {
        let (ours, theirs) = Channel::pair().map_err(std::io::Error::other)?;
        let folder = std::env::current_dir()?;
        let child = program.start(theirs, &folder)?;
        let request = Request {
            params: ParamsSource::None,
            // Files are a call's own.
            read: Vec::new(),
            write: Vec::new(),
            ..request.clone()
        };
        let load = serde_json::to_vec(&ToNursery::Load(Box::new(request)))?;
        ours.send(&load, &[]).map_err(std::io::Error::other)?;
        let (undertaker, given_back) = channel();
        let keeper = Arc::new(Keeper {
            undertaker,
            state: Mutex::new(State {
                stage: Stage::Loading,
                last_stage: Instant::now(),
                waiting: VecDeque::new(),
                ahead_of: BTreeSet::new(),
                busy: 0,
                ahead: 2.min(most.max(1)),
                most: most.max(1),
                next: 0,
                ordered: BTreeMap::new(),
                last_claim: Instant::now(),
                child: Some(child),
            }),
            changed: Condvar::new(),
            channel: ours,
        });
        let listening = Arc::clone(&keeper);
        std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || listening.listen())?;
        // Not an owner: it ends with the last one.
        let burying = Arc::downgrade(&keeper);
        std::thread::Builder::new()
            .name("undertaker".into())
            .spawn(move || {
                loop {
                    let given = given_back.recv_timeout(INSPECTION);
                    let keeper = burying.upgrade();
                    match (given, keeper) {
                        (Ok((number, left)), Some(keeper)) => keeper.bury(number, left),
                        (Ok((_, left)), None) => drop(left.map(Left::bury)),
                        (Err(RecvTimeoutError::Timeout), Some(keeper)) => keeper.inspect(),
                        (Err(_), _) => return,
                    }
                }
            })?;
        Ok(keeper)
    }

    fn listen(&self) {
        while let Ok(Some((bytes, fds))) = self.channel.receive() {
            let Ok(message) = serde_json::from_slice(&bytes) else {
                break;
            };
            let mut nobodys = None;
            let mut state = self.state();
            match message {
                FromNursery::Loaded(loaded) => state.set(Stage::Loaded(Arc::new(loaded))),
                FromNursery::Unfit(why) => state.set(Stage::Not(Cold::Unfit(why))),
                FromNursery::Failed(_) => state.set(Stage::Not(Cold::Unprepared)),
                FromNursery::Made(made) => {
                    let number = made.number;
                    match (
                        adopt(&state.stage, made, fds),
                        state.ahead_of.remove(&number),
                    ) {
                        (None, _) => {
                            state.set(Stage::Not(Cold::NoCell("it came broken".into())));
                        }
                        (Some(waiting), true) => state.waiting.push_back(waiting),
                        (Some(waiting), false) => match state.ordered.get_mut(&number) {
                            Some(slot) => *slot = Some(Ok(waiting)),
                            None => nobodys = Some(waiting),
                        },
                    }
                }
                FromNursery::NotMade { number, why } => match state.ordered.get_mut(&number) {
                    Some(slot) => *slot = Some(Err(why)),
                    None => state.set(Stage::Not(Cold::NoCell(why))),
                },
            }
            self.ask_for_more(&mut state);
            self.changed.notify_all();
            drop(state);
            // Whoever ordered it has given up.
            if let Some(waiting) = nobodys {
                self.tell(&ToNursery::Done(waiting.number));
                drop(waiting);
            }
        }
        let mut state = self.state();
        // What waits rests on a nursery that is gone, and died with it.
        state.waiting.clear();
        if !matches!(state.stage, Stage::Not(_)) {
            state.set(Stage::Not(Cold::NoCell("its nursery ended".into())));
        }
        if let Some(mut child) = state.child.take() {
            // It has closed its end, so it is on its way out.
            child.wait().map(drop).unwrap_or(());
        }
        self.changed.notify_all();
    }

    /// A cell for a call of this plan, and what is known of its template.
    pub(super) fn claim(
        &self,
        request: &Request,
        plan: &Plan,
        base: &Digest,
    ) -> Result<(Waiting, Arc<Loaded>), Cold> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        state.last_claim = Instant::now();
        loop {
            let loaded = match &state.stage {
                Stage::Loading => return Err(Cold::Loading),
                Stage::Not(why) => return Err(why.clone()),
                Stage::Loaded(loaded) => Arc::clone(loaded),
            };
            // A nursery closes its end before its cells are killed: none of them is given out any more.
            if self.channel.is_closed() {
                return Err(Cold::NoCell("its nursery ended".into()));
            }
            // Made from the same request, but perhaps a moment before something changed.
            if loaded.plan != base.as_str() {
                return Err(Cold::NoCell("the plan has changed".into()));
            }
            if !plan.files.is_empty() {
                return Ok((self.order(state, request)?, loaded));
            }
            if let Some(waiting) = state.waiting.pop_front() {
                state.busy += 1;
                return Ok((waiting, loaded));
            }
            // Nobody was ahead of demand: be further ahead from now on.
            if state.ahead_of.len() <= state.ahead {
                state.ahead = (state.ahead * 2).min(state.most);
                self.ask_for_more(&mut state);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Cold::NoCell("none was made in time".into()));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The call is answered. Its cell has been told to end; when it has, its place is free.
    pub(super) fn give_back(&self, number: u64, left: Option<Left>) {
        let waiting = self.undertaker.send((number, left));
        if waiting.is_err() {
            self.bury(number, None); // the daemon is on its way out
        }
    }

    /// Waits for the end of what was given back, so that nobody else has to.
    fn bury(&self, number: u64, left: Option<Left>) {
        if let Some(left) = left {
            left.bury();
        }
        self.tell(&ToNursery::Done(number));
        let mut state = self.state();
        state.busy -= 1;
        self.ask_for_more(&mut state);
        self.changed.notify_all();
    }

    /// Returns when it is known whether the skill can be resumed. Its own time limit holds while it
    /// is loaded.
    pub(super) fn until_loaded(&self) {
        let mut state = self.state();
        while matches!(state.stage, Stage::Loading) {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One cell for one call, with that call's files in it.
    fn order<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        request: &Request,
    ) -> Result<Waiting, Cold> {
        state.next += 1;
        let number = state.next;
        let call = Some(Box::new(request.clone()));
        let order = serde_json::to_vec(&ToNursery::Make { number, call });
        let sent = order
            .map_err(|_| ())
            .and_then(|o| self.channel.send(&o, &[]).map_err(|_| ()));
        if sent.is_err() {
            return Err(Cold::NoCell("the call is too large to be passed on".into()));
        }
        state.ordered.insert(number, None);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let over = left.is_zero() || matches!(state.stage, Stage::Not(_));
            match state.ordered.get_mut(&number).and_then(Option::take) {
                Some(made) => {
                    state.ordered.remove(&number);
                    state.busy += usize::from(made.is_ok());
                    return made.map_err(Cold::NoCell);
                }
                None if over => {
                    // Should it come after all, it is let go as nobody's.
                    state.ordered.remove(&number);
                    return Err(Cold::NoCell("none was made in time".into()));
                }
                None => {}
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn ask_for_more(&self, state: &mut State) {
        if !matches!(state.stage, Stage::Loaded(_)) {
            return;
        }
        while state.waiting.len() + state.ahead_of.len() < state.ahead {
            state.next += 1;
            let number = state.next;
            state.ahead_of.insert(number);
            self.tell(&ToNursery::Make { number, call: None });
        }
    }

    /// A nursery that can't be told has ended, and its keeper notices.
    fn tell(&self, what: &ToNursery) {
        if let Ok(bytes) = serde_json::to_vec(what) {
            self.channel.send(&bytes, &[]).unwrap_or(());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn last_claim(&self) -> Instant {
        self.state().last_claim
    }

    pub(super) fn is_busy(&self) -> bool {
        self.state().busy > 0
    }

    /// Whether another one is to be tried in its place.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        let failed = matches!(state.stage, Stage::Not(Cold::NoCell(_)));
        failed && state.last_stage.elapsed() > REST
    }

    /// A skill may have code that runs in a cell which only waits, where no call's time limit ends it.
    fn inspect(&self) {
        let mut state = self.state();
        let restless = state.waiting.iter().any(|waiting| {
            let pids = procfs::descendants(waiting.running.cell.pid);
            pids.iter().map(|pid| procfs::cpu_millis(*pid)).sum::<u64>() > RESTLESS_MILLIS
        });
        if restless {
            state.waiting.clear();
            state.set(Stage::Not(Cold::Unfit(
                "it doesn't rest while it waits".into(),
            )));
            self.changed.notify_all();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    pub(super) fn image_bytes(&self) -> u64 {
        match &self.state().stage {
            Stage::Loaded(loaded) => loaded.image_bytes,
            _ => 0,
        }
    }

    /// Ends the nursery and every cell that waits, unless calls run that would go too.
    pub(super) fn retire(&self) -> bool {
        let mut state = self.state();
        if state.busy > 0 {
            return false;
        }
        // Under the lock, so that nobody claims a cell from here on.
        if !matches!(state.stage, Stage::Not(_)) {
            state.set(Stage::Not(Cold::NoCell("its template was let go".into())));
        }
        state.waiting.clear();
        self.changed.notify_all();
        rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both).unwrap_or(());
        true
    }
}

fn adopt(stage: &Stage, made: Made, fds: Vec<OwnedFd>) -> Option<Waiting> {
    let Stage::Loaded(loaded) = stage else {
        return None;
    };
    let mut fds = fds.into_iter();
    let params = fds.next()?;
    let allowed = AllowList::from_bytes(made.allowed.as_ref().unwrap_or(&loaded.allowed));
    let cell = Cell::adopt(made.shape(), fds.collect(), &allowed).ok()?;
    let cgroup = made
        .cgroup
        .as_ref()
        .map(|folders| CellCgroup::borrow(folders.iter().map(CgroupFolder::from).collect()));
    let outputs = made.outputs.into_iter().map(|(host, files)| OutputFolder {
        host,
        files: files.into_iter().map(PathBuf::into_os_string).collect(),
    });
    let outputs = outputs.collect();
    Some(Waiting {
        payload: payload(made.pid),
        number: made.number,
        running: Running::adopt(cell, cgroup, outputs, made.shown),
        params,
    })
}

/// The payload is the only child of the cell's init.
fn payload(init: u32) -> Option<Task> {
    let pid = *procfs::children(init).first()?;
    Some(Task {
        pid,
        tid: pid,
        ppid: init,
    })
}
