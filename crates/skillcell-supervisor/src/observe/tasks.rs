//! Which process a thread belongs to, and who its parent was when it was first seen.

use skillcell_audit::Task;
use skillcell_linux::procfs;
use std::collections::HashMap;

/// Most threads that are remembered at once; a storm of them begins anew.
const MOST: usize = 8192;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: HashMap<u32, Task>,
    seen: u64,
}

impl Tasks {
    /// The task with this number. It waits for an answer, so its number is its own.
    pub(super) fn of(&mut self, tid: u32) -> Task {
        if let Some(task) = self.known.get(&tid) {
            return *task;
        }
        self.seen += 1;
        self.look(tid)
    }

    fn look(&mut self, tid: u32) -> Task {
        // A task that is being killed can't be asked any more.
        let (pid, ppid) = procfs::family(tid).unwrap_or((tid, 0));
        let task = Task { pid, tid, ppid };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(tid, task);
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
