//! One call in numbers.

use skillcell_audit::{Access, Summary};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Tally {
    classes: BTreeMap<&'static str, u64>,
    programs: u64,
    files_read: u64,
    files_written: u64,
}

impl Tally {
    pub(super) fn call(&mut self, class: &'static str) {
        *self.classes.entry(class).or_default() += 1;
    }

    pub(super) fn program(&mut self) {
        self.programs += 1;
    }

    pub(super) fn file(&mut self, access: Access) {
        match access {
            Access::Read => self.files_read += 1,
            Access::Write | Access::ReadWrite => self.files_written += 1,
        }
    }

    /// What the network and the denials add is the supervisor's to fill in.
    pub(super) fn summary(self, tasks: u64) -> Summary {
        Summary {
            syscalls: self
                .classes
                .into_iter()
                .map(|(class, count)| (class.to_owned(), count))
                .collect(),
            programs: self.programs,
            tasks,
            files_read: self.files_read,
            files_written: self.files_written,
            ..Summary::default()
        }
    }
}
