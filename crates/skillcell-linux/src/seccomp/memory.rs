//! Open memory of tasks that ask again and again: opening it costs more than everything else that is
//! done for a record.

use std::collections::HashMap;
use std::fs::File;

/// Kept at most.
const MOST: usize = 64;
/// Uses after which all are opened anew: a number that was given to another task meanwhile must not
/// keep the old one's memory for long.
const USES: u32 = 1024;

/// By thread. What is open is the memory that the thread had then: one that executes a program, or
/// ends, must be forgotten.
#[derive(Debug, Default)]
pub(super) struct Memory {
    open: HashMap<u32, File>,
    uses: u32,
}

impl Memory {
    pub(super) fn of(&mut self, tid: u32) -> Option<&File> {
        self.uses += 1;
        if self.uses > USES {
            self.clear();
        }
        self.open.get(&tid)
    }

    pub(super) fn keep(&mut self, tid: u32, file: File) {
        if self.open.len() >= MOST {
            self.open.clear();
        }
        self.open.insert(tid, file);
    }

    pub(super) fn forget(&mut self, tid: u32) {
        self.open.remove(&tid);
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.uses = 0;
    }
}
