use super::ask::{ask, call};
use super::list;
use super::tree::Tree;
use super::words::{self, status_style};
use crate::args_audit_query::ShowArgs;
use crate::output::{self, FAINT, Format, WARNING, one_line};
use crate::table::{heading, table};
use crate::when;
use serde_json::json;
use serde_json::value::RawValue;
use skillcell_audit::{Call, CallEnded, CallStarted, Event, Found, Record, parse};
use skillcell_core::{Denial, EnforcementStatus};
use std::process::ExitCode;

/// Everything about one call.
struct Story {
    call: Call,
    lines: Vec<Found>,
    records: Vec<Record>,
    /// System calls that are recorded and left out here.
    left_out: u64,
}

pub(super) fn show(args: &ShowArgs) -> ExitCode {
    let format = args.log.format();
    let answer = ask(&args.log, |index| {
        let call = match call(index, &args.run)? {
            Ok(call) => call,
            Err(none) => return Ok(Err(none)),
        };
        let but = (!args.all).then_some("syscall");
        let lines = index.events_of(&call, but)?;
        let left_out = match but {
            Some(kind) => index.count_of(&call, kind)?,
            None => 0,
        };
        Ok(Ok((call, lines, left_out)))
    });
    match answer {
        Ok((call, lines, left_out)) => {
            let records = lines.iter().filter_map(|f| parse(&f.line).ok()).collect();
            let story = Story {
                call,
                lines,
                records,
                left_out,
            };
            match format {
                Format::Json => story.print_json(),
                Format::Human => output::print(&story.text(args)),
            }
            ExitCode::SUCCESS
        }
        Err(none) => none.tell(format),
    }
}

impl Story {
    fn print_json(&self) {
        let events: Vec<Box<RawValue>> = self
            .lines
            .iter()
            .filter_map(|f| serde_json::from_slice(&f.line).ok())
            .collect();
        output::json_value(&json!({
            "call": list::as_json(&self.call),
            "processes": Tree::of(&self.records).json(),
            "events": events,
            "syscalls_left_out": self.left_out,
        }));
    }

    fn text(&self, args: &ShowArgs) -> String {
        let tree = Tree::of(&self.records);
        if args.tree {
            return tree.text();
        }
        let mut text = self.header();
        if !args.no_tree && !tree.is_empty() {
            text.push_str(&format!("\n{}{}", heading("Processes"), tree.text()));
        }
        text.push_str(&format!("\n{}{}", heading("Timeline"), self.timeline()));
        let rows = self.summary();
        if !rows.is_empty() {
            let summary = table(["", ""], &rows);
            text.push_str(&format!("\n{}{summary}", heading("Summary")));
        }
        text
    }

    fn started(&self) -> Option<&CallStarted> {
        self.records.iter().find_map(|r| match &r.event {
            Event::CallStarted(call) => Some(&**call),
            _ => None,
        })
    }

    fn ended(&self) -> Option<&CallEnded> {
        self.records.iter().rev().find_map(|r| match &r.event {
            Event::CallEnded(call) => Some(&**call),
            _ => None,
        })
    }

    fn summary(&self) -> Vec<[String; 2]> {
        let mut rows = Vec::new();
        for record in &self.records {
            match &record.event {
                Event::CallEnded(call) => {
                    rows = did(call);
                    rows.extend(denied(&call.denials));
                }
                Event::CallRefused(call) => rows = denied(&call.denials),
                _ => {}
            }
        }
        rows
    }

    fn header(&self) -> String {
        let call = &self.call;
        let style = status_style(call.status.as_deref());
        let status = call.status.as_deref().unwrap_or("unfinished");
        let reason = call.reason.as_deref();
        let reason = reason.map_or(String::new(), |r| format!(" ({})", one_line(r)));
        let title = heading(&words::short(&list::skill(call), 200));
        let mut text = format!(
            "{}  {style}{}{style:#}{reason}\n",
            title.trim_end(),
            one_line(status)
        );
        let mut rows: Vec<[String; 2]> = Vec::new();
        let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
        row("run", call.run_id.to_string());
        row("started", when::rfc3339(call.started_us));
        if let Some(level) = &call.level {
            row(
                "record",
                format!("{level}, {}", words::count(call.events, "event", "events")),
            );
        }
        if let Some(started) = self.started() {
            let trusted = if started.trusted { ", trusted" } else { "" };
            row("isolation", format!("{}{trusted}", started.isolation));
            row("plan", started.plan.to_string());
        }
        for (name, value) in [("actor", &call.actor), ("request", &call.request_id)] {
            if let Some(value) = value {
                row(name, words::short(value, 200));
            }
        }
        if let Some(ended) = self.ended() {
            let usage = &ended.usage;
            row(
                "usage",
                format!(
                    "{} wall, {} CPU, {} memory, {} out, {} in",
                    words::millis(usage.wall_ms),
                    words::millis(usage.cpu_ms),
                    words::bytes(usage.peak_memory_bytes),
                    words::bytes(usage.bytes_out),
                    words::bytes(usage.bytes_in)
                ),
            );
        }
        for line in self
            .started()
            .map(|s| s.enforcement.as_slice())
            .unwrap_or_default()
        {
            if line.status == EnforcementStatus::Degraded {
                let mechanism = words::short(&line.mechanism, 200);
                row("degraded", format!("{}: {mechanism}", line.control));
            }
        }
        text.push_str(&table(["", ""], &rows));
        text
    }

    fn timeline(&self) -> String {
        let begin = self.records.first().map_or(0, |r| r.mono_us);
        let mut text = String::new();
        for record in &self.records {
            let time = relative(record.mono_us.saturating_sub(begin));
            let pid = record.pid.map_or(String::new(), |p| p.to_string());
            let thread = match (record.pid, record.tid) {
                (Some(pid), Some(tid)) if pid != tid => format!("/{tid}"),
                _ => String::new(),
            };
            let (style, words) = words::event(&record.event);
            text.push_str(&format!(
                "  {FAINT}{time:>12}  {:<15}{FAINT:#}  {style}{words}{style:#}\n",
                format!("{pid}{thread}")
            ));
        }
        let unread = self.lines.len() - self.records.len();
        if unread > 0 {
            text.push_str(&format!(
                "  {WARNING}{unread} events are not understood by this version{WARNING:#}\n"
            ));
        }
        if self.left_out > 0 {
            let calls = words::count(self.left_out, "system call", "system calls");
            text.push_str(&format!("  {FAINT}{calls} not shown; see --all{FAINT:#}\n"));
        }
        text
    }
}

/// `+12.3 ms`, `+4.56 s`.
fn relative(micros: u64) -> String {
    match micros {
        0..1_000_000 => format!("+{:.1} ms", micros as f64 / 1e3),
        _ => format!("+{:.3} s", micros as f64 / 1e6),
    }
}

fn did(ended: &CallEnded) -> Vec<[String; 2]> {
    let sum = &ended.summary;
    let parts = [
        words::count(sum.programs, "program", "programs"),
        words::count(sum.tasks, "task", "tasks"),
        format!("{} files read", sum.files_read),
        format!("{} written", sum.files_written),
        words::count(sum.connections, "connection", "connections"),
        format!("to {}", words::count(sum.hosts, "host", "hosts")),
    ];
    let mut rows = vec![["did".to_owned(), parts.join(", ")]];
    if !sum.syscalls.is_empty() {
        let classes: Vec<String> = sum
            .syscalls
            .iter()
            .map(|(class, n)| format!("{} {n}", words::short(class, 40)))
            .collect();
        rows.push(["system calls".to_owned(), classes.join(", ")]);
    }
    rows
}

/// What was denied, and what would allow it.
fn denied(denials: &[Denial]) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    for denial in denials {
        let times = match denial.count {
            1 => String::new(),
            n => format!(", {n} times"),
        };
        let target = words::short(&denial.target, 200);
        rows.push([
            "denied".to_owned(),
            format!("{} {target} ({}{times})", denial.kind, denial.reason),
        ]);
        if !denial.hint.is_empty() {
            let hint = words::short(&denial.hint, 300);
            rows.push([String::new(), format!("to allow: {hint}")]);
        }
    }
    rows
}
