//! All templates of a daemon. A call is warm where everything it depends on was loaded before, and
//! what is loaded is decided by what was called.

use super::claim::{self, Claim};
use super::keeper::Keeper;
use super::key::{self, Cold, Key};
use super::sealed::Program;
use crate::shelf::Shelf;
use crate::{Interaction, Known, Outcome, Request, call, prepare, record};
use rustix::fd::BorrowedFd;
use skillcell_core::HostFacts;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Reasons that are counted by themselves.
const MOST_REASONS: usize = 64;

/// How much may be kept ready.
#[derive(Debug, Clone, Copy)]
pub struct PoolTerms {
    pub templates: usize,
    /// Cells that wait, per template.
    pub waiting: usize,
    /// Bytes of all images together.
    pub image_bytes: u64,
    /// A template that nobody called for this long is let go.
    pub idle: Duration,
    /// Whether the first call waits until its skill is loaded, instead of being made cold.
    pub first_call: FirstCall,
}

/// What becomes of a call whose skill isn't loaded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstCall {
    Cold,
    Waits,
}

impl Default for PoolTerms {
    fn default() -> Self {
        PoolTerms {
            templates: 16,
            waiting: 16,
            image_bytes: 2 << 30,
            idle: Duration::from_secs(600),
            first_call: FirstCall::Cold,
        }
    }
}

/// What the pool has and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolCounts {
    pub templates: u64,
    pub waiting: u64,
    pub image_bytes: u64,
    pub warm_calls: u64,
    pub cold_calls: BTreeMap<String, u64>,
    pub evicted: u64,
}

pub struct Pool {
    terms: PoolTerms,
    program: Program,
    host: HostFacts,
    shelf: Shelf,
    keepers: Mutex<HashMap<Key, Arc<Keeper>>>,
    warm: AtomicU64,
    /// How often calls were made cold, and why.
    cold: Mutex<BTreeMap<String, u64>>,
    evicted: AtomicU64,
}

impl Pool {
    pub fn new(terms: PoolTerms, host: HostFacts) -> std::io::Result<Pool> {
        Ok(Pool {
            terms,
            program: Program::of_this_process()?,
            host,
            shelf: Shelf::default(),
            keepers: Mutex::default(),
            warm: AtomicU64::new(0),
            cold: Mutex::default(),
            evicted: AtomicU64::new(0),
        })
    }

    /// Makes a call in a waiting cell. Without one nothing has happened yet: the call is to be made
    /// cold, and the reason is why. `cancel` ends it when it becomes readable.
    pub fn run(
        &self,
        request: &Request,
        ui: &dyn Interaction,
        cancel: BorrowedFd<'_>,
    ) -> Result<Outcome, Cold> {
        let done = self.warm_call(request, ui, cancel);
        match &done {
            Ok(_) => {
                self.warm.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => self.note_cold(why),
        }
        done
    }

    fn warm_call(
        &self,
        request: &Request,
        ui: &dyn Interaction,
        cancel: BorrowedFd<'_>,
    ) -> Result<Outcome, Cold> {
        // Policy, bundle and params are looked at anew for each call: what waits was made under the
        // plan that comes out here, or isn't used.
        let (known, now) = (&mut Known::default(), prepare::When::Now);
        let ready =
            prepare::prepare_with(request, self.host.clone(), known, now, Some(&self.shelf))
                .map_err(|_| Cold::Unprepared)?;
        let base = ready.plan.base_digest();
        let key = key::key(request, &ready, &base)?;
        let keeper = self.keeper(&key, request)?;
        if self.terms.first_call == FirstCall::Waits {
            keeper.until_loaded();
        }
        let claimed = keeper.claim(request, &ready.plan, &base)?;
        let run_id = call::new_run_id();
        let skill = ready.plan.skill.clone();
        let mut recorder = None;
        let claim = Claim {
            request,
            ready,
            run_id: &run_id,
            ui,
            cancel,
        };
        Ok(
            claim::run(claim, claimed, &keeper, &mut recorder).unwrap_or_else(|error| {
                let audit = recorder
                    .map(|r| record::abandon(&r, &error))
                    .unwrap_or_default();
                call::failed(&run_id, skill, &error, audit)
            }),
        )
    }

    fn keeper(&self, key: &Key, request: &Request) -> Result<Arc<Keeper>, Cold> {
        let mut keepers = self.keepers();
        if let Some(keeper) = keepers.get(key) {
            // A dead or broken template is replaced, when the calls that it still has are over.
            if !keeper.is_over() || !keeper.retire() {
                return Ok(Arc::clone(keeper));
            }
            keepers.remove(key);
        }
        self.make_room(&mut keepers);
        if keepers.len() >= self.terms.templates {
            return Err(Cold::NoCell("every template is in use".into()));
        }
        let keeper = Keeper::start(&self.program, request, self.terms.waiting)
            .map_err(|e| Cold::NoCell(e.to_string()))?;
        keepers.insert(key.clone(), Arc::clone(&keeper));
        Ok(keeper)
    }

    /// Lets go of what nobody has called for long, and of the least recently called while there is
    /// too much.
    fn make_room(&self, keepers: &mut HashMap<Key, Arc<Keeper>>) {
        loop {
            let bytes: u64 = keepers.values().map(|k| k.image_bytes()).sum();
            let full = keepers.len() >= self.terms.templates || bytes > self.terms.image_bytes;
            let oldest = keepers
                .iter()
                .filter(|(_, k)| !k.is_busy())
                .min_by_key(|(_, k)| k.last_claim())
                .map(|(key, k)| (key.clone(), k.last_claim().elapsed()));
            let Some((key, _)) = oldest.filter(|(_, unused)| full || *unused > self.terms.idle)
            else {
                return;
            };
            // One that was claimed meanwhile is busy, and another one's turn comes.
            if keepers.get(&key).is_some_and(|keeper| keeper.retire()) {
                keepers.remove(&key);
                self.evicted.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub fn counts(&self) -> PoolCounts {
        let keepers = self.keepers();
        PoolCounts {
            templates: keepers.len() as u64,
            waiting: keepers.values().map(|k| k.waiting() as u64).sum(),
            image_bytes: keepers.values().map(|k| k.image_bytes()).sum(),
            warm_calls: self.warm.load(Ordering::Relaxed),
            cold_calls: self.cold().clone(),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// A call that is made cold, for a reason of the pool's or of whoever asks it.
    pub fn note_cold(&self, why: &Cold) {
        let mut cold = self.cold();
        let why = why.to_string();
        // A skill may choose words that are part of a reason; their number is bounded here.
        let known = cold.len() < MOST_REASONS || cold.contains_key(&why);
        *cold
            .entry(if known { why } else { "other".into() })
            .or_default() += 1;
    }

    fn cold(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything go. Calls must have ended.
    pub fn shut_down(&self) {
        for (_, keeper) in self.keepers().drain() {
            keeper.retire();
        }
    }

    fn keepers(&self) -> MutexGuard<'_, HashMap<Key, Arc<Keeper>>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shut_down();
    }
}
