//! The processes of a call, from who says to be whose child.

use super::words;
use crate::output::{ERROR, FAINT, GOOD};
use serde_json::{Value, json};
use skillcell_audit::{Event, Record, Text};
use std::collections::HashMap;

/// Deeper ones are shown at this depth: a chain of forks is not to push the rest out of sight.
const MAX_DEPTH: usize = 24;
/// More processes than these are counted.
const MAX_SHOWN: usize = 400;

#[derive(Debug)]
struct Process {
    pid: u32,
    ppid: u32,
    parent: Option<usize>,
    programs: Vec<(Text, Vec<Text>, u64)>,
    exit: Option<i32>,
    threads: Vec<u32>,
}

/// All processes that a call's events name. Numbers of processes are used again; one that has ended
/// and starts something is another one.
#[derive(Debug, Default)]
pub(super) struct Tree {
    processes: Vec<Process>,
    now: HashMap<u32, usize>,
}

impl Tree {
    pub(super) fn of(records: &[Record]) -> Tree {
        let mut tree = Tree::default();
        for record in records {
            tree.add(record);
        }
        tree.adopt();
        tree
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    fn add(&mut self, record: &Record) {
        let Some(pid) = record.pid else {
            return;
        };
        let ppid = record.ppid.unwrap_or(0);
        let known = self.now.get(&pid).copied().filter(|at| {
            let process = &self.processes[*at];
            let begins = matches!(record.event, Event::ProcessStarted { .. });
            !(begins && process.exit.is_some())
        });
        let at = known.unwrap_or_else(|| {
            self.processes.push(Process {
                pid,
                ppid,
                parent: self.now.get(&ppid).copied(),
                programs: Vec::new(),
                exit: None,
                threads: Vec::new(),
            });
            self.now.insert(pid, self.processes.len() - 1);
            self.processes.len() - 1
        });
        let process = &mut self.processes[at];
        if let Some(tid) = record.tid
            && tid != pid
            && !process.threads.contains(&tid)
            && process.threads.len() < MAX_SHOWN
        {
            process.threads.push(tid);
        }
        match &record.event {
            Event::ProcessStarted {
                program,
                argv,
                argc,
            } => process
                .programs
                .push((program.clone(), argv.clone(), *argc)),
            Event::ProcessEnded { code } => process.exit = Some(*code),
            _ => {}
        }
    }

    /// Finds parents that were only seen after their children.
    fn adopt(&mut self) {
        for at in 0..self.processes.len() {
            if self.processes[at].parent.is_some() {
                continue;
            }
            let parent = self.now.get(&self.processes[at].ppid).copied();
            let mut above = parent;
            while let Some(next) = above.filter(|next| *next != at) {
                above = self.processes[next].parent;
            }
            // Reaching itself would make a circle.
            if above.is_none() {
                self.processes[at].parent = parent;
            }
        }
    }

    fn children(&self) -> HashMap<Option<usize>, Vec<usize>> {
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (at, process) in self.processes.iter().enumerate() {
            children.entry(process.parent).or_default().push(at);
        }
        children
    }

    pub(super) fn text(&self) -> String {
        let children = self.children();
        let mut lines = Vec::new();
        // From the last to the first, as a stack gives them back.
        let mut stack: Vec<(usize, Vec<bool>)> = Vec::new();
        let push = |stack: &mut Vec<(usize, Vec<bool>)>, of: Option<usize>, above: &[bool]| {
            let list = children.get(&of).map(Vec::as_slice).unwrap_or_default();
            for (n, at) in list.iter().enumerate().rev() {
                let mut above = above.to_vec();
                if of.is_some() {
                    above.push(n + 1 == list.len());
                }
                stack.push((*at, above));
            }
        };
        push(&mut stack, None, &[]);
        while let Some((at, above)) = stack.pop() {
            if lines.len() == MAX_SHOWN {
                let more = self.processes.len() - MAX_SHOWN;
                lines.push(format!("  {FAINT}… {more} more processes{FAINT:#}"));
                break;
            }
            lines.push(format!("  {}{}", branch(&above), self.processes[at].line()));
            push(&mut stack, Some(at), &above);
        }
        lines.join("\n") + "\n"
    }

    pub(super) fn json(&self) -> Value {
        self.processes
            .iter()
            .map(|p| {
                json!({
                    "pid": p.pid,
                    "ppid": p.ppid,
                    "programs": p.programs.iter().map(|(program, argv, argc)| {
                        json!({"program": program, "argv": argv, "argc": argc})
                    }).collect::<Vec<_>>(),
                    "exit_code": p.exit,
                    "threads": p.threads,
                })
            })
            .collect()
    }
}

/// The lines that lead to a process; each is whether that one was the last of its siblings.
fn branch(above: &[bool]) -> String {
    let Some((last, before)) = above.split_last() else {
        return String::new();
    };
    let hidden = before.len().saturating_sub(MAX_DEPTH);
    let mut text = FAINT.render().to_string();
    if hidden > 0 {
        text.push_str(&format!("({hidden} more levels) "));
    }
    for done in &before[hidden..] {
        text.push_str(if *done { "   " } else { "│  " });
    }
    text.push_str(if *last { "└─ " } else { "├─ " });
    text.push_str(&FAINT.render_reset().to_string());
    text
}

impl Process {
    fn line(&self) -> String {
        let pid = self.pid;
        let mut text = format!("{FAINT}{pid}{FAINT:#} ");
        let programs: Vec<String> = self
            .programs
            .iter()
            .map(|(program, argv, argc)| {
                if argv.is_empty() {
                    words::short(program.as_str(), 200)
                } else {
                    words::command(argv, *argc)
                }
            })
            .collect();
        if programs.is_empty() {
            text.push_str(&format!("{FAINT}(a fork){FAINT:#}"));
        } else {
            text.push_str(&programs.join(" → "));
        }
        if !self.threads.is_empty() {
            let threads = words::count(self.threads.len() as u64, "more thread", "more threads");
            text.push_str(&format!("  {FAINT}{threads}{FAINT:#}"));
        }
        match self.exit {
            Some(0) => text.push_str(&format!("  {GOOD}exit 0{GOOD:#}")),
            Some(code) => text.push_str(&format!("  {ERROR}exit {code}{ERROR:#}")),
            None => {}
        }
        text
    }
}
