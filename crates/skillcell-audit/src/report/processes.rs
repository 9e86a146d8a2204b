//! Which program started which.

use crate::{Event, Record};
use std::collections::BTreeMap;

/// Processes that are shown.
const MAX: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Processes {
    /// In the order of their beginning; a parent stands before its children.
    pub(super) all: Vec<Process>,
    /// The last process with a number: numbers are used again.
    alive: BTreeMap<u32, usize>,
    pub(super) left_out: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: Option<usize>,
    /// Each executed in the place of the one before.
    pub(super) programs: Vec<Program>,
    pub(super) code: Option<i32>,
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: String,
    pub(super) argv: Vec<String>,
    pub(super) argc: u64,
}

impl Processes {
    pub(super) fn take(&mut self, record: &Record) {
        let Some(pid) = record.pid else {
            return;
        };
        match &record.event {
            Event::ProcessStarted {
                program,
                argv,
                argc,
            } => {
                let program = Program {
                    path: program.to_string(),
                    argv: argv.iter().map(ToString::to_string).collect(),
                    argc: *argc,
                };
                let known = self.alive.get(&pid).copied();
                if let Some(process) = known.and_then(|index| self.all.get_mut(index))
                    && process.programs.len() < MAX
                {
                    process.programs.push(program);
                } else if known.is_none() && self.all.len() < MAX {
                    self.alive.insert(pid, self.all.len());
                    self.all.push(Process {
                        pid,
                        parent: record.ppid.and_then(|ppid| self.alive.get(&ppid).copied()),
                        programs: vec![program],
                        code: None,
                    });
                } else {
                    self.left_out += 1;
                }
            }
            Event::ProcessEnded { code } => {
                if let Some(process) = self
                    .alive
                    .remove(&pid)
                    .and_then(|index| self.all.get_mut(index))
                {
                    process.code = Some(*code);
                }
            }
            _ => {}
        }
    }

    pub(super) fn children(&self, of: Option<usize>) -> impl Iterator<Item = (usize, &Process)> {
        self.all
            .iter()
            .enumerate()
            .filter(move |(_, process)| process.parent == of)
    }
}
