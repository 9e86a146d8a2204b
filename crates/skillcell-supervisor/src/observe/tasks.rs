//! Which process a thread belongs to, and who its parent was when it was first seen.

use skillcell_audit::Task;
use skillcell_linux::procfs;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Most threads that are remembered at once; a storm of them begins anew.
const MOST: usize = 8192;
/// For how long a number is believed. One that is killed doesn't say that it ends, and its number is
/// given to another once all others were; that takes longer.
const AGE: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy)]
struct Known {
    task: Task,
    /// When it began, which tells it from another with its number.
    born: Option<u64>,
    /// When that was last true.
    since: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: HashMap<u32, Known>,
    seen: u64,
}

impl Tasks {
    /// The task with this number. It waits for an answer, so its number is its own.
    pub(super) fn of(&mut self, tid: u32) -> Task {
        let now = Instant::now();
        if let Some(known) = self.known.get_mut(&tid) {
            if now.duration_since(known.since) >= AGE && procfs::born(tid) == known.born {
                known.since = now;
            }
            if now.duration_since(known.since) < AGE {
                return known.task;
            }
        }
        self.seen += 1;
        self.look(tid, now)
    }

    fn look(&mut self, tid: u32, since: Instant) -> Task {
        // A task that is being killed can't be asked any more.
        let (pid, ppid) = procfs::family(tid).unwrap_or((tid, 0));
        let task = Task { pid, tid, ppid };
        let born = procfs::born(tid);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(tid, Known { task, born, since });
        task
    }

    /// After this call the number may belong to another: an exit gives it back.
    pub(super) fn forget(&mut self, tid: u32) {
        self.known.remove(&tid);
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_to_another_is_not_believed() {
        let mut tasks = Tasks::default();
        let me = std::process::id();
        let mine = tasks.of(me);
        let old = |born| Known {
            task: Task { ppid: 7, ..mine },
            born,
            since: Instant::now() - 2 * AGE,
        };
        tasks.known.insert(me, old(procfs::born(me)));
        assert_eq!(
            tasks.of(me).ppid,
            7,
            "still the same: an orphan keeps its parent"
        );
        tasks.known.insert(me, old(Some(1)));
        assert_eq!(tasks.of(me), mine);
        assert_eq!(tasks.seen(), 2);
    }
}
