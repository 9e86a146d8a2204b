//! Which files a run opened and changed.

use crate::export::word;
use crate::{Access, Event, Record};
use std::collections::{BTreeMap, BTreeSet};

/// Paths that are shown.
const MAX: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) all: BTreeMap<String, File>,
    pub(super) left_out: u64,
}

#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) changes: BTreeSet<String>,
}

impl File {
    pub(super) fn is_written(&self) -> bool {
        self.writes > 0 || !self.changes.is_empty()
    }
}

impl Files {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::FileOpened(opened) => {
                if let Some(file) = self.file(opened.path.as_str()) {
                    match opened.access {
                        Access::Read => file.reads += 1,
                        Access::Write => file.writes += 1,
                        Access::ReadWrite => {
                            file.reads += 1;
                            file.writes += 1;
                        }
                    }
                }
            }
            Event::FileChanged { change, path, .. } => {
                if let Some(file) = self.file(path.as_str()) {
                    file.changes.insert(word(change).replace('_', " "));
                }
            }
            _ => {}
        }
    }

    fn file(&mut self, path: &str) -> Option<&mut File> {
        if !self.all.contains_key(path) && self.all.len() >= MAX {
            self.left_out += 1;
            return None;
        }
        Some(self.all.entry(path.to_owned()).or_default())
    }
}
