//! Which lines of a log are wanted.

use super::Entry;
use super::call::{Call, Calls, Refused};
use crate::{AuditError, Folder, Lines, Position, Record, parse};
use serde::Deserialize;
use skillcell_core::RunId;

/// All that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub run: Option<RunId>,
    /// Microseconds since 1970; lines from this moment on.
    pub since_us: Option<u64>,
    /// Lines before this moment.
    pub until_us: Option<u64>,
    /// The id of the skill that was called.
    pub skill: Option<String>,
}

/// The wanted lines of a log, one at a time: what is kept in memory doesn't grow with the log.
pub struct Selection {
    lines: Lines,
    filter: Filter,
    calls: Calls,
    line: Vec<u8>,
    record: Option<Record>,
    refused: Vec<Refused>,
    unreadable: u64,
}

/// A line of the log.
pub struct Selected<'a> {
    /// As it is in the log, without its newline.
    pub line: &'a [u8],
    /// `None` for an event that this version doesn't know.
    pub entry: Option<Entry<'a>>,
}

/// What every version's lines have.
#[derive(Deserialize)]
struct Common {
    run_id: Option<RunId>,
    unix_us: u64,
}

impl Selection {
    pub fn new(folder: &Folder, filter: Filter) -> Result<Selection, AuditError> {
        Ok(Selection {
            lines: Lines::from(folder, Position::default())?,
            filter,
            calls: Calls::default(),
            line: Vec::new(),
            record: None,
            refused: Vec::new(),
            unreadable: 0,
        })
    }

    /// Wanted lines so far that this version can't read: a newer one wrote them.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    #[expect(
        clippy::should_implement_trait,
        reason = "what it gives borrows from it, which an Iterator can't say"
    )]
    pub fn next(&mut self) -> Result<Option<Selected<'_>>, AuditError> {
        loop {
            let Some((line, _)) = self.lines.next()? else {
                return Ok(None);
            };
            if let Some(run) = &self.filter.run
                && run_of(line) != Some(run.as_str())
            {
                continue;
            }
            self.line.clear();
            self.line.extend_from_slice(line);
            self.record = parse(line).ok();
            let wanted = match &self.record {
                Some(record) => {
                    let (call, refused) = self.calls.take(record);
                    self.refused = refused;
                    self.filter.wants(record.unix_us, call)
                }
                None => match serde_json::from_slice::<Common>(line) {
                    Ok(common) => {
                        let call = self.calls.of(common.run_id.as_ref());
                        self.filter.wants(common.unix_us, call)
                    }
                    Err(_) => true,
                },
            };
            if wanted {
                break;
            }
        }
        if self.record.is_none() {
            self.unreadable += 1;
        }
        Ok(Some(Selected {
            line: &self.line,
            entry: self.record.as_ref().map(|record| Entry {
                record,
                call: self.calls.of(record.run_id.as_ref()),
                refused: &self.refused,
            }),
        }))
    }
}

impl Filter {
    fn wants(&self, unix_us: u64, call: &Call) -> bool {
        self.since_us.is_none_or(|since| unix_us >= since)
            && self.until_us.is_none_or(|until| unix_us < until)
            && self
                .skill
                .as_ref()
                .is_none_or(|skill| call.skill.id.as_ref() == Some(skill))
    }
}

/// The run of a line, without parsing the rest of it: `{"seq":N,"run_id":"…"`.
fn run_of(line: &[u8]) -> Option<&str> {
    let comma = line.iter().position(|b| *b == b',')?;
    let id = line[comma..].strip_prefix(b",\"run_id\":\"")?;
    let end = id.iter().position(|b| *b == b'"')?;
    std::str::from_utf8(&id[..end]).ok()
}

/// What a prefix of a run's id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    None,
    One(RunId),
    /// More than one; the first two.
    Several(RunId, RunId),
}

/// Looks for the run whose id begins like this.
pub fn find_run(folder: &Folder, prefix: &str) -> Result<Found, AuditError> {
    let mut lines = Lines::from(folder, Position::default())?;
    let mut found: Option<RunId> = None;
    while let Some((line, _)) = lines.next()? {
        let Some(run) = run_of(line).filter(|run| run.starts_with(prefix)) else {
            continue;
        };
        if found.as_ref().is_some_and(|known| known.as_str() == run) {
            continue;
        }
        let Ok(run) = RunId::parse(run) else {
            continue;
        };
        match found {
            None => found = Some(run),
            Some(first) => return Ok(Found::Several(first, run)),
        }
    }
    Ok(found.map_or(Found::None, Found::One))
}
