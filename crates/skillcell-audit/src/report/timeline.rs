//! What happened, in order.

use super::escape::{hostile, plain};
use crate::export::call::{request_line, target};
use crate::export::{Entry, kind, word};
use crate::{Event, Text};
use std::collections::BTreeMap;

/// Events that are shown; of system calls, which are many, fewer.
const MAX: usize = 2000;
const MAX_SYSCALLS: usize = 500;

/// What can be filtered by, with the words for it.
pub(super) const GROUPS: [(&str, &str); 6] = [
    ("call", "call"),
    ("denied", "denied"),
    ("process", "processes"),
    ("file", "files"),
    ("network", "network"),
    ("syscall", "system calls"),
];

#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) rows: Vec<Row>,
    syscalls: usize,
    /// By kind.
    pub(super) left_out: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) unix_us: u64,
    pub(super) n: u64,
    pub(super) pid: Option<u32>,
    pub(super) kind: &'static str,
    pub(super) group: &'static str,
    /// As HTML, escaped.
    pub(super) what: String,
}

impl Timeline {
    pub(super) fn take(&mut self, entry: &Entry<'_>) {
        let record = entry.record;
        let is_syscall = matches!(record.event, Event::Syscall(_));
        let full = match is_syscall {
            true => self.syscalls >= MAX_SYSCALLS,
            false => self.rows.len() - self.syscalls >= MAX,
        };
        // The end is always there.
        if full && !record.event.ends_call() {
            *self.left_out.entry(kind(&record.event)).or_default() += 1;
            return;
        }
        self.syscalls += usize::from(is_syscall);
        self.rows.push(Row {
            unix_us: record.unix_us,
            n: record.n.unwrap_or_default(),
            pid: record.pid,
            kind: kind(&record.event),
            group: group(entry),
            what: what(&record.event),
        });
    }
}

fn group(entry: &Entry<'_>) -> &'static str {
    match &entry.record.event {
        Event::CallStarted(_)
        | Event::CallEnded(_)
        | Event::CallRefused(_)
        | Event::LimitReached { .. } => "call",
        _ if !entry.refused.is_empty() => "denied",
        Event::Denied(_) => "denied",
        Event::ProcessStarted { .. } | Event::ProcessEnded { .. } => "process",
        Event::FileOpened(_) | Event::FileChanged { .. } => "file",
        Event::Connect { .. }
        | Event::NameAsked(_)
        | Event::ConnectionDecided(_)
        | Event::ConnectionEnded(_)
        | Event::HttpRequest(_)
        | Event::EgressDropped { .. } => "network",
        Event::Syscall(_) => "syscall",
        Event::SegmentOpened { .. } | Event::Recovered { .. } | Event::Pruned(_) => "call",
    }
}

fn what(event: &Event) -> String {
    let reason = |denied: Option<skillcell_core::Reason>| match denied {
        Some(reason) => format!(" <span class=bad>{reason}</span>"),
        None => String::new(),
    };
    match event {
        Event::CallStarted(started) => format!(
            "{} at level {}",
            hostile(started.skill.id.as_deref().unwrap_or("a skill")),
            started.isolation
        ),
        Event::CallEnded(ended) => plain(&word(&ended.status)),
        Event::CallRefused(call) => format!(
            "{} {}{}",
            hostile(call.skill.id.as_deref().unwrap_or("a skill")),
            plain(&word(&call.status)),
            reason(Some(call.reason))
        ),
        Event::LimitReached { reason } => reason.to_string(),
        Event::Denied(denied) => format!(
            "{} {}{}",
            denied.kind,
            hostile(denied.target.as_str()),
            reason(Some(denied.reason))
        ),
        Event::ProcessStarted {
            program,
            argv,
            argc,
        } => format!(
            "{} <span class=dim>{}</span>",
            hostile(program.as_str()),
            arguments(argv.iter().map(Text::as_str), *argc)
        ),
        Event::ProcessEnded { code } => format!("exit code {code}"),
        Event::FileOpened(opened) => format!(
            "{} <span class=dim>{}</span>",
            hostile(opened.path.as_str()),
            plain(&opened.flags)
        ),
        Event::FileChanged { change, path, to } => {
            let to = match to {
                Some(to) => format!(" → {}", hostile(to.as_str())),
                None => String::new(),
            };
            let change = word(change).replace('_', " ");
            format!("{change} {}{to}", hostile(path.as_str()))
        }
        Event::Connect { address } => hostile(address.as_str()),
        Event::NameAsked(name) => format!("{}{}", hostile(&name.host), reason(name.denied)),
        Event::ConnectionDecided(to) => {
            let to_whom = hostile(&target(&to.host, to.port));
            format!("{to_whom}{}", reason(to.denied))
        }
        Event::HttpRequest(request) => {
            let line = hostile(&request_line(request));
            format!("{line}{}", reason(request.denied))
        }
        Event::ConnectionEnded(ended) => format!(
            "{} <span class=dim>{} out, {} in, {} ms</span>{}",
            hostile(&target(&ended.host, ended.port)),
            ended.bytes_out,
            ended.bytes_in,
            ended.millis,
            reason(ended.denied)
        ),
        Event::EgressDropped { count } => format!("{count} more were not recorded"),
        Event::Syscall(call) => format!(
            "{}({}){}",
            hostile(&call.name),
            arguments_of_call(&call.args),
            call.errno
                .map(|e| format!(" <span class=bad>errno {e}</span>"))
                .unwrap_or_default()
        ),
        Event::SegmentOpened { .. } | Event::Recovered { .. } | Event::Pruned(_) => String::new(),
    }
}

/// The arguments after the program's own name.
pub(super) fn arguments<'a>(argv: impl ExactSizeIterator<Item = &'a str>, argc: u64) -> String {
    let more = argc.saturating_sub(argv.len() as u64);
    let mut words: Vec<String> = argv.skip(1).map(hostile).collect();
    if more > 0 {
        words.push(format!("<b class=odd>… {more} more arguments</b>"));
    }
    words.join(" ")
}

fn arguments_of_call(args: &[Text]) -> String {
    let words: Vec<String> = args.iter().map(|a| hostile(a.as_str())).collect();
    words.join(", ")
}
