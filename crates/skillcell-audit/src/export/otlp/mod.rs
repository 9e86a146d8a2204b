//! Traces in the JSON encoding of OTLP: a call is a trace, its connections and processes are spans of it, and
//! denials, names, files and limits are events of the span that they belong to. Single system calls are
//! left out: traces are no place for millions of them.

mod json;
mod trace;

use super::{Entry, VERSION};
use json::attribute;
use serde_json::{Value, json};
use skillcell_core::RunId;
use std::collections::BTreeMap;
use trace::Trace;

/// Traces that are open at once; more, and the oldest is given up as unfinished.
const MAX_OPEN: usize = 1024;

/// Puts spans together from events.
#[derive(Debug, Default)]
pub struct Traces {
    open: BTreeMap<RunId, Trace>,
}

impl Traces {
    /// Takes an event; gives the spans that are complete by it.
    pub fn take(&mut self, entry: &Entry<'_>) -> Vec<Value> {
        let Some(run) = &entry.record.run_id else {
            return Vec::new();
        };
        let mut spans = Vec::new();
        if !self.open.contains_key(run) && self.open.len() >= MAX_OPEN {
            // Ids sort by time.
            if let Some((_, oldest)) = self.open.pop_first() {
                spans.extend(oldest.unfinished());
            }
        }
        let trace = self
            .open
            .entry(run.clone())
            .or_insert_with(|| Trace::new(run, entry));
        spans.extend(trace.take(entry));
        if entry.record.event.ends_call()
            && let Some(trace) = self.open.remove(run)
        {
            spans.extend(trace.finish(&entry.record.event));
        }
        spans
    }

    /// Calls whose end is not among the events: they go on, or their supervisor was killed.
    pub fn rest(self) -> Vec<Value> {
        self.open
            .into_values()
            .flat_map(Trace::unfinished)
            .collect()
    }
}

/// An `ExportTraceServiceRequest` with these spans.
pub fn request(spans: Vec<Value>) -> Value {
    json!({
        "resourceSpans": [{
            "resource": {
                "attributes": [
                    attribute("service.name", "skillcell"),
                    attribute("service.version", VERSION),
                ],
            },
            "scopeSpans": [{
                "scope": {"name": "skillcell.audit", "version": VERSION},
                "spans": spans,
            }],
        }],
    })
}
