use super::failure;
use crate::args_audit::LogArgs;
use crate::args_audit_export::{ExportArgs, ExportFormat};
use crate::output::{self, Format, printable};
use crate::post::{Client, PostError};
use crate::sink::{Sink, SinkError};
use serde_json::Value;
use skillcell_audit::export::{
    Entry, Filter, Found, Selected, Selection, csv, find_run, ocsf, otlp, skillhub,
};
use skillcell_audit::{AuditError, Folder};
use skillcell_core::{ErrorBody, Reason, RunId, Status};
use std::path::Path;
use std::process::ExitCode;

/// Spans of one request.
const BATCH: usize = 512;

/// What stops an export.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error("the audit log: {0}")]
    Log(#[from] AuditError),
    #[error("{0}")]
    Sink(#[from] SinkError),
    #[error("{0}")]
    Post(#[from] PostError),
    #[error("{0}")]
    Usage(String, &'static str),
}

impl Stop {
    pub(super) fn tell(self) -> ExitCode {
        let (status, code, hint) = match &self {
            Stop::Log(error) => return failure(error, Format::Human),
            Stop::Sink(SinkError::Closed) => return ExitCode::SUCCESS,
            Stop::Sink(_) => (
                Status::Refused,
                Reason::AuditUnavailable,
                "nothing was written under that name; choose another file with -o",
            ),
            Stop::Post(error) if error.is_usage() => (
                Status::InvalidInput,
                Reason::InvalidUsage,
                "secrets for the collector belong into OTEL_EXPORTER_OTLP_HEADERS",
            ),
            Stop::Post(_) => (
                Status::Refused,
                Reason::AuditUnavailable,
                "is this a collector that takes OTLP over HTTP? Sending again does no harm: spans keep their ids",
            ),
            Stop::Usage(_, hint) => (Status::InvalidInput, Reason::InvalidUsage, *hint),
        };
        let body = ErrorBody {
            code,
            message: self.to_string(),
            hint: Some(hint.to_owned()),
        };
        output::failure(status, &body, Format::Human)
    }
}

pub(super) fn export(args: &ExportArgs) -> ExitCode {
    match work(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => stop.tell(),
    }
}

fn work(args: &ExportArgs) -> Result<(), Stop> {
    let folder = folder(args.log.as_deref())?;
    let filter = Filter {
        run: match &args.run {
            Some(prefix) => Some(run(&folder, prefix)?),
            None => None,
        },
        since_us: args.since.map(|moment| moment.0),
        until_us: args.until.map(|moment| moment.0),
        skill: args.skill.clone(),
    };
    let mut selection = Selection::new(&folder, filter)?;
    match (&args.endpoint, args.format) {
        (Some(endpoint), ExportFormat::Otlp) => send(&mut selection, endpoint)?,
        (Some(_), _) => {
            return Err(Stop::Usage(
                "--endpoint takes traces only".to_owned(),
                "add --format otlp, or write the other formats to a file or pipe",
            ));
        }
        (None, format) => {
            let mut sink = Sink::new(args.output.as_deref())?;
            write(&mut selection, format, &mut sink)?;
            sink.finish()?;
        }
    }
    let unreadable = selection.unreadable();
    if unreadable > 0 && args.format != ExportFormat::Jsonl {
        output::warning(&format!(
            "{unreadable} lines are left out: a newer version of skillcell wrote them"
        ));
    }
    Ok(())
}

fn write(selection: &mut Selection, format: ExportFormat, sink: &mut Sink) -> Result<(), Stop> {
    match format {
        ExportFormat::Jsonl => {
            while let Some(Selected { line, .. }) = selection.next()? {
                sink.write(line)?;
                sink.write(b"\n")?;
            }
            Ok(())
        }
        ExportFormat::Ocsf => lines(selection, sink, ocsf::events),
        ExportFormat::Skillhub => lines(selection, sink, skillhub::rows),
        ExportFormat::Csv => {
            sink.write(csv::header().as_bytes())?;
            while let Some(selected) = selection.next()? {
                if let Some(entry) = &selected.entry {
                    sink.write(csv::row(entry).as_bytes())?;
                }
            }
            Ok(())
        }
        ExportFormat::Otlp => batches(selection, |spans| {
            Ok(sink.write(format!("{}\n", otlp::request(spans)).as_bytes())?)
        }),
    }
}

fn lines(
    selection: &mut Selection,
    sink: &mut Sink,
    values: impl Fn(&Entry<'_>) -> Vec<Value>,
) -> Result<(), Stop> {
    while let Some(selected) = selection.next()? {
        for value in selected.entry.iter().flat_map(&values) {
            sink.write(format!("{value}\n").as_bytes())?;
        }
    }
    Ok(())
}

/// All spans, some at a time.
fn batches(
    selection: &mut Selection,
    mut out: impl FnMut(Vec<Value>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut traces = otlp::Traces::default();
    let mut spans = Vec::new();
    while let Some(selected) = selection.next()? {
        if let Some(entry) = &selected.entry {
            spans.extend(traces.take(entry));
        }
        if spans.len() >= BATCH {
            out(std::mem::take(&mut spans))?;
        }
    }
    spans.extend(traces.rest());
    if spans.is_empty() {
        return Ok(());
    }
    out(spans)
}

fn send(selection: &mut Selection, endpoint: &str) -> Result<(), Stop> {
    let headers = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let client = Client::new(endpoint, "/v1/traces", &headers)?;
    let (mut sent, mut rejected) = (0, 0);
    batches(selection, |spans| {
        sent += spans.len() as u64;
        let answer = client.post(otlp::request(spans).to_string().into_bytes())?;
        rejected += partial(&answer);
        Ok(())
    })?;
    if rejected > 0 {
        output::warning(&format!("the collector rejected {rejected} spans"));
    }
    let accepted = sent - rejected.min(sent);
    output::print(&printable(&format!(
        "sent {accepted} spans to {}\n",
        client.url()
    )));
    Ok(())
}

/// How many spans a collector that took the request did not take.
fn partial(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let rejected = &answer["partialSuccess"]["rejectedSpans"];
    match rejected {
        Value::String(digits) => digits.parse().unwrap_or(0),
        other => other.as_u64().unwrap_or(0),
    }
}

pub(super) fn folder(log: Option<&Path>) -> Result<Folder, Stop> {
    let log = LogArgs {
        log: log.map(Path::to_owned),
        json: false,
    };
    Ok(log.folder()?)
}

/// The run whose id begins like this.
pub(super) fn run(folder: &Folder, prefix: &str) -> Result<RunId, Stop> {
    let hint = "an envelope has it as run_id";
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if prefix.is_empty() || !prefix.bytes().all(digit) {
        let what = format!("`{prefix}` is not the beginning of a run's id");
        return Err(Stop::Usage(what, hint));
    }
    match find_run(folder, prefix)? {
        Found::One(run) => Ok(run),
        Found::None => Err(Stop::Usage(
            format!(
                "no run in {} has an id that begins with {prefix}",
                folder.path().display()
            ),
            hint,
        )),
        Found::Several(one, other) => Err(Stop::Usage(
            format!("more than one run begins with {prefix}: {one}, {other}"),
            "give more digits",
        )),
    }
}
