//! One call as a trace.

use super::json::{Attributes, nanos, span_id, trace_id};
use crate::export::call::target;
use crate::export::{Entry, Refused, kind, word};
use crate::{CallEnded, ConnectionDecided, Event, HttpRequest, Record, Text};
use serde_json::{Value, json};
use skillcell_core::{EgressEvent, Reason, RunId, Status};
use std::collections::BTreeMap;

/// Events of one span; more are counted in it.
const MAX_EVENTS: usize = 1000;
/// Processes or connections without an end so far.
const MAX_PENDING: usize = 4096;

// Span kinds and status codes of the protocol.
const INTERNAL: u32 = 1;
const CLIENT: u32 = 3;
const UNSET: u32 = 0;
const OK: u32 = 1;
const ERROR: u32 = 2;

/// A span that is being made.
#[derive(Debug)]
struct Span {
    /// The number of the event that it begins with; 0 for the call itself.
    n: u64,
    parent: Option<u64>,
    name: String,
    kind: u32,
    start_us: u64,
    end_us: u64,
    attributes: Attributes,
    events: Vec<Value>,
    dropped: u64,
    status: (u32, String),
}

#[derive(Debug)]
pub(super) struct Trace {
    run: RunId,
    root: Span,
    last_us: u64,
    processes: BTreeMap<u32, Span>,
    connections: BTreeMap<u64, Span>,
}

impl Span {
    fn new(n: u64, parent: Option<u64>, name: String, kind: u32, start_us: u64) -> Span {
        Span {
            n,
            parent,
            name,
            kind,
            start_us,
            end_us: start_us,
            attributes: Attributes::default(),
            events: Vec::new(),
            dropped: 0,
            status: (UNSET, String::new()),
        }
    }

    fn event(&mut self, record: &Record, name: &str, attributes: Attributes) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(json!({
                "timeUnixNano": nanos(record.unix_us),
                "name": name,
                "attributes": attributes.0,
            }));
        } else {
            self.dropped += 1;
        }
    }

    fn fail(&mut self, why: &str) {
        self.status = (ERROR, why.to_owned());
    }

    fn into_value(self, run: &RunId) -> Value {
        let mut span = json!({
            "traceId": trace_id(run),
            "spanId": span_id(run, self.n),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": nanos(self.start_us),
            "endTimeUnixNano": nanos(self.end_us.max(self.start_us)),
            "attributes": self.attributes.0,
            "events": self.events,
            "droppedEventsCount": self.dropped,
            "status": {"code": self.status.0, "message": self.status.1},
        });
        if let (Some(parent), Value::Object(fields)) = (self.parent, &mut span) {
            fields.insert("parentSpanId".to_owned(), json!(span_id(run, parent)));
        }
        span
    }
}

impl Trace {
    /// A trace that begins with its call, or with the first event of it that there is.
    pub(super) fn new(run: &RunId, entry: &Entry<'_>) -> Trace {
        let call = entry.call;
        let start = call.started_us.unwrap_or(entry.record.unix_us);
        let name = format!(
            "run {}",
            call.skill.id.as_deref().unwrap_or("unknown skill")
        );
        let mut root = Span::new(0, None, name, INTERNAL, start);
        let digest = call.skill.digest.as_ref();
        root.attributes
            .add("skillcell.run.id", Some(run.as_str()))
            .add("skillcell.skill.id", call.skill.id.as_deref())
            .add("skillcell.skill.version", call.skill.version.as_deref())
            .add("skillcell.skill.digest", digest.map(|d| d.as_str()))
            .add("skillcell.isolation", call.isolation.map(|i| i.as_str()))
            .add("skillcell.audit.level", call.level.map(|l| l.as_str()))
            .add("skillcell.request.id", call.request_id.as_deref())
            .add("user.id", call.actor.as_deref());
        Trace {
            run: run.clone(),
            root,
            last_us: start,
            processes: BTreeMap::new(),
            connections: BTreeMap::new(),
        }
    }

    /// Takes an event; gives the spans that are complete by it.
    pub(super) fn take(&mut self, entry: &Entry<'_>) -> Vec<Value> {
        let record = entry.record;
        self.last_us = self.last_us.max(record.unix_us);
        let mut done = Vec::new();
        match &record.event {
            Event::CallStarted(started) => {
                self.root
                    .attributes
                    .add("skillcell.plan.digest", Some(started.plan.as_str()))
                    .add("skillcell.trusted", Some(started.trusted));
            }
            Event::ProcessStarted {
                program,
                argv,
                argc,
            } => done.extend(self.process(record, program, argv, *argc)),
            Event::ProcessEnded { code } => {
                if let Some(mut span) = record.pid.and_then(|pid| self.processes.remove(&pid)) {
                    span.end_us = record.unix_us;
                    span.attributes.add("process.exit.code", Some(*code));
                    if *code != 0 {
                        span.fail(&format!("exit code {code}"));
                    }
                    done.push(span);
                }
            }
            Event::ConnectionDecided(to) => done.extend(self.connection(record, to)),
            Event::ConnectionEnded(ended) => done.push(self.ended(record, ended)),
            Event::HttpRequest(request) => self.request(record, request),
            Event::NameAsked(name) => {
                let mut attributes = Attributes::default();
                attributes
                    .add("dns.question.name", Some(name.host.as_str()))
                    .add("skillcell.reason", name.denied.map(|r| r.code()));
                self.root.event(record, "name asked", attributes);
            }
            Event::FileOpened(opened) => {
                let mut attributes = Attributes::default();
                attributes
                    .add("file.path", Some(opened.path.as_str()))
                    .add("skillcell.file.access", Some(word(&opened.access)))
                    .add("skillcell.file.flags", Some(opened.flags.as_str()));
                self.of_process(record)
                    .event(record, "file opened", attributes);
            }
            Event::FileChanged { change, path, to } => {
                let mut attributes = Attributes::default();
                attributes
                    .add("file.path", Some(path.as_str()))
                    .add("skillcell.file.change", Some(word(change)))
                    .add("skillcell.file.to", to.as_ref().map(Text::as_str));
                self.of_process(record)
                    .event(record, "file changed", attributes);
            }
            Event::LimitReached { reason } => {
                let mut attributes = Attributes::default();
                attributes.add("skillcell.reason", Some(reason.code()));
                self.root.event(record, "limit reached", attributes);
            }
            Event::EgressDropped { count } => {
                let mut attributes = Attributes::default();
                attributes.add("skillcell.count", Some(*count));
                self.root.event(record, kind(&record.event), attributes);
            }
            // Their ends and denials say it all; single calls are too many.
            Event::CallEnded(_)
            | Event::CallRefused(_)
            | Event::Connect { .. }
            | Event::Denied(_)
            | Event::Syscall(_)
            | Event::SegmentOpened { .. }
            | Event::Recovered { .. }
            | Event::Pruned(_) => {}
        }
        for refused in entry.refused {
            self.of_process(record)
                .event(record, "denied", denial(refused));
        }
        done.into_iter()
            .map(|span| span.into_value(&self.run))
            .collect()
    }

    /// The span that an event of a process belongs to.
    fn of_process(&mut self, record: &Record) -> &mut Span {
        match record.pid.and_then(|pid| self.processes.get_mut(&pid)) {
            Some(span) => span,
            None => &mut self.root,
        }
    }

    /// A program in the place of the one before it, or in a new process.
    fn process(
        &mut self,
        record: &Record,
        program: &Text,
        argv: &[Text],
        argc: u64,
    ) -> Option<Span> {
        let pid = record.pid?;
        let parent = record
            .ppid
            .and_then(|ppid| self.processes.get(&ppid))
            .map_or(0, |span| span.n);
        let name = program.as_str().rsplit('/').next().unwrap_or("process");
        let mut span = Span::new(
            record.n.unwrap_or_default(),
            Some(parent),
            format!("exec {name}"),
            INTERNAL,
            record.unix_us,
        );
        let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
        span.attributes
            .add("process.pid", Some(u64::from(pid)))
            .add("process.parent_pid", record.ppid.map(u64::from))
            .add("process.executable.path", Some(program.as_str()))
            .add("process.command_args", Some(words))
            .add("skillcell.process.argc", Some(argc));
        let mut over = self.processes.insert(pid, span);
        if over.is_none() && self.processes.len() > MAX_PENDING {
            over = self.processes.pop_first().map(|(_, span)| span);
        }
        over.map(|mut span| {
            span.end_us = record.unix_us;
            span
        })
    }

    fn connection(&mut self, record: &Record, to: &ConnectionDecided) -> Option<Span> {
        let mut span = Span::new(
            record.n.unwrap_or_default(),
            Some(0),
            format!("connect {}", target(&to.host, to.port)),
            CLIENT,
            record.unix_us,
        );
        span.attributes
            .add("server.address", Some(to.host.as_str()))
            .add("server.port", to.port.map(u64::from))
            .add("skillcell.egress.adapter", Some(word(&to.adapter)))
            .add("skillcell.egress.rule", to.rule.map(|r| r as u64));
        if let Some(reason) = to.denied {
            span.fail(reason.code());
        }
        let mut over = self.connections.insert(to.connection, span);
        if over.is_none() && self.connections.len() > MAX_PENDING {
            over = self.connections.pop_first().map(|(_, span)| span);
        }
        over
    }

    fn ended(&mut self, record: &Record, ended: &EgressEvent) -> Span {
        let known = ended.connection.and_then(|c| self.connections.remove(&c));
        let micros = ended.millis.saturating_mul(1000);
        let mut span = known.unwrap_or_else(|| {
            let start = record.unix_us.saturating_sub(micros);
            let mut span = Span::new(
                record.n.unwrap_or_default(),
                Some(0),
                format!("connect {}", target(&ended.host, ended.port)),
                CLIENT,
                start.max(self.root.start_us),
            );
            span.attributes
                .add("server.address", Some(ended.host.as_str()))
                .add("server.port", ended.port.map(u64::from))
                .add("skillcell.egress.adapter", Some(word(&ended.adapter)))
                .add("skillcell.egress.rule", ended.rule.map(|r| r as u64));
            span
        });
        span.end_us = span.start_us.saturating_add(micros);
        span.attributes
            .add("network.peer.address", ended.address.map(|a| a.to_string()))
            .add("skillcell.egress.bytes_out", Some(ended.bytes_out))
            .add("skillcell.egress.bytes_in", Some(ended.bytes_in))
            .add("skillcell.egress.requests", Some(ended.requests))
            .add("skillcell.egress.inspected", Some(ended.inspected))
            .add("skillcell.egress.open_at_end", Some(ended.open_at_end));
        if let Some(reason) = ended.denied {
            span.fail(reason.code());
        }
        span
    }

    fn request(&mut self, record: &Record, request: &HttpRequest) {
        let mut attributes = Attributes::default();
        attributes
            .add("http.request.method", Some(request.method.as_str()))
            .add("server.address", Some(request.host.as_str()))
            .add("server.port", Some(u64::from(request.port)))
            .add("url.path", Some(request.path.as_str()))
            .add("skillcell.reason", request.denied.map(|r| r.code()));
        let span = request
            .connection
            .and_then(|c| self.connections.get_mut(&c))
            .unwrap_or(&mut self.root);
        span.event(record, "http request", attributes);
    }

    /// All that is left, by the end of the call.
    pub(super) fn finish(mut self, last: &Event) -> Vec<Value> {
        match last {
            Event::CallEnded(ended) => {
                self.status(ended.status, ended.reason);
                self.numbers(ended);
            }
            Event::CallRefused(call) => self.status(call.status, Some(call.reason)),
            _ => {}
        }
        self.close()
    }

    fn status(&mut self, status: Status, reason: Option<Reason>) {
        let word = word(&status);
        let reason = reason.map(|r| r.code());
        self.root
            .attributes
            .add("skillcell.status", Some(word.as_str()))
            .add("skillcell.reason", reason);
        if status == Status::Ok {
            self.root.status = (OK, String::new());
        } else {
            let kind = reason.unwrap_or(&word);
            self.root.fail(kind);
            self.root.attributes.add("error.type", Some(kind));
        }
    }

    fn numbers(&mut self, ended: &CallEnded) {
        let (usage, summary) = (&ended.usage, &ended.summary);
        self.root
            .attributes
            .add("skillcell.usage.wall_ms", Some(usage.wall_ms))
            .add("skillcell.usage.cpu_ms", Some(usage.cpu_ms))
            .add(
                "skillcell.usage.peak_memory_bytes",
                Some(usage.peak_memory_bytes),
            )
            .add("skillcell.usage.bytes_out", Some(usage.bytes_out))
            .add("skillcell.usage.bytes_in", Some(usage.bytes_in))
            .add("skillcell.summary.programs", Some(summary.programs))
            .add("skillcell.summary.files_read", Some(summary.files_read))
            .add(
                "skillcell.summary.files_written",
                Some(summary.files_written),
            )
            .add("skillcell.summary.hosts", Some(summary.hosts))
            .add("skillcell.summary.connections", Some(summary.connections))
            .add("skillcell.summary.denials", Some(summary.denials))
            .add(
                "skillcell.summary.syscalls",
                Some(summary.syscalls.values().sum::<u64>()),
            );
    }

    /// What there is of a call without an end.
    pub(super) fn unfinished(mut self) -> Vec<Value> {
        self.root.attributes.add("skillcell.unfinished", Some(true));
        self.close()
    }

    fn close(mut self) -> Vec<Value> {
        let end = self.last_us;
        self.root.end_us = end;
        let pending = self.processes.into_values().chain(
            // A connection whose end was not recorded is not known to have lasted.
            self.connections.into_values(),
        );
        let mut spans: Vec<Value> = pending
            .map(|mut span| {
                if span.kind == INTERNAL {
                    span.end_us = end;
                    span.attributes
                        .add("skillcell.process.end_seen", Some(false));
                }
                span.into_value(&self.run)
            })
            .collect();
        spans.push(self.root.into_value(&self.run));
        spans
    }
}

fn denial(refused: &Refused) -> Attributes {
    let mut attributes = Attributes::default();
    attributes
        .add("skillcell.denial.kind", Some(refused.kind.to_string()))
        .add("skillcell.denial.target", Some(refused.target.as_str()))
        .add("skillcell.reason", Some(refused.reason.code()))
        .add("skillcell.denial.count", Some(refused.count))
        .add("skillcell.hint", refused.hint.as_deref());
    attributes
}
