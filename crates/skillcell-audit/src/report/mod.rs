//! One run as a page: what it was, what held it, what it did. Collected a line at a time and bounded,
//! however much a run did; what is left out is counted.

mod escape;
mod files;
mod html;
mod network;
mod processes;
mod sections;
mod timeline;
mod units;

use crate::export::{Entry, Refused};
use crate::{Broken, CallEnded, CallRefused, CallStarted, Event, Text, Verified};
use files::Files;
use network::Network;
use processes::Processes;
use skillcell_core::{Reason, SkillRef, Status};
use timeline::Timeline;

/// Denials that are shown.
const MAX_DENIALS: usize = 500;

/// What a page says of one run.
#[derive(Debug, Default)]
pub struct Report {
    run_id: Option<String>,
    started: Option<(u64, CallStarted)>,
    ended: Option<(u64, CallEnded)>,
    /// Instead of a beginning and an end.
    not_begun: Option<(u64, CallRefused)>,
    refused: Vec<Refused>,
    refused_left_out: u64,
    processes: Processes,
    network: Network,
    files: Files,
    timeline: Timeline,
    first: Option<Line>,
    last: Option<Line>,
    lines: u64,
}

/// A line's place in the chain.
#[derive(Debug, Clone)]
struct Line {
    seq: u64,
    hash: String,
    unix_us: u64,
}

/// What a page says of the log that it was made from.
#[derive(Debug)]
pub struct Checked {
    /// The folder of the log.
    pub log: String,
    pub result: Result<Verified, Broken>,
    /// When it was verified, in microseconds since 1970.
    pub at_us: u64,
    /// Lines of the run that this version can't read.
    pub unreadable: u64,
}

impl Report {
    /// Takes the next event of the run.
    pub fn take(&mut self, entry: &Entry<'_>) {
        let record = entry.record;
        let line = Line {
            seq: record.seq,
            hash: record.hash.clone(),
            unix_us: record.unix_us,
        };
        if self.first.is_none() {
            self.first = Some(line.clone());
            self.run_id = record.run_id.as_ref().map(ToString::to_string);
        }
        self.last = Some(line);
        self.lines += 1;
        match &record.event {
            Event::CallStarted(started) => {
                self.started = Some((record.unix_us, (**started).clone()));
            }
            Event::CallEnded(ended) => self.ended = Some((record.unix_us, (**ended).clone())),
            Event::CallRefused(call) => self.not_begun = Some((record.unix_us, (**call).clone())),
            _ => {}
        }
        self.processes.take(record);
        self.network.take(record);
        self.files.take(record);
        self.timeline.take(entry);
        // The end of a call has each denial with its number and what would allow it.
        if !record.event.ends_call() {
            for refused in entry.refused {
                self.refuse(refused);
            }
        }
    }

    fn refuse(&mut self, refused: &Refused) {
        let known = self.refused.iter_mut().find(|r| {
            r.kind == refused.kind && r.reason == refused.reason && r.target == refused.target
        });
        if let Some(known) = known {
            known.count += refused.count;
        } else if self.refused.len() < MAX_DENIALS {
            self.refused.push(refused.clone());
        } else {
            self.refused_left_out += refused.count;
        }
    }

    /// The denials of the end, and those that only events have told of.
    fn denials(&self) -> Vec<Refused> {
        let ended = self.ended.iter().flat_map(|(_, e)| &e.denials);
        let not_begun = self.not_begun.iter().flat_map(|(_, c)| &c.denials);
        let mut all: Vec<Refused> = ended.chain(not_begun).map(Refused::from).collect();
        for refused in &self.refused {
            let told = all.iter().any(|r| {
                r.kind == refused.kind && r.reason == refused.reason && r.target == refused.target
            });
            if !told {
                all.push(refused.clone());
            }
        }
        all
    }

    fn skill(&self) -> Option<&SkillRef> {
        let started = self.started.as_ref().map(|(_, s)| &s.skill);
        started.or(self.not_begun.as_ref().map(|(_, c)| &c.skill))
    }

    /// On whose behalf, and for which request.
    fn caller(&self) -> Option<(&Option<Text>, &Option<Text>)> {
        let started = self.started.as_ref();
        let not_begun = self.not_begun.as_ref();
        started
            .map(|(_, s)| (&s.actor, &s.request_id))
            .or(not_begun.map(|(_, c)| (&c.actor, &c.request_id)))
    }

    /// How it ended, and why.
    fn outcome(&self) -> Option<(Status, Option<Reason>)> {
        let ended = self.ended.as_ref().map(|(_, e)| (e.status, e.reason));
        let not_begun = self.not_begun.as_ref();
        ended.or(not_begun.map(|(_, c)| (c.status, Some(c.reason))))
    }

    /// The page.
    pub fn html(&self, checked: &Checked) -> String {
        html::page(self, checked)
    }
}
