//! The record in formats of others. Each file turns events into values of one format and does no
//! I/O; [`Selection`] reads the log, a line at a time.

pub(crate) mod call;
pub mod csv;
pub mod ocsf;
pub mod otlp;
mod select;
pub mod skillhub;
mod time;

pub use call::{Call, Refused};
pub use select::{Filter, Found, Selected, Selection, find_run};
pub use time::{parse_rfc3339, rfc3339};

use crate::{Event, Record};

/// Of this build, for the formats that say who wrote something.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One event, with what the log said of its call before.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub record: &'a Record,
    pub call: &'a Call,
    /// What this event says was not allowed, unless an earlier one has said it.
    pub refused: &'a [Refused],
}

impl Entry<'_> {
    /// `"event"` and `"data"` of the line, as JSON.
    fn parts(&self) -> (String, serde_json::Value) {
        // An event that was read can be written again.
        let mut value = serde_json::to_value(&self.record.event).unwrap_or_default();
        let data = value
            .get_mut("data")
            .map(serde_json::Value::take)
            .unwrap_or_default();
        (kind(&self.record.event).to_owned(), data)
    }
}

/// The word that stands for a kind of event in the log.
pub fn kind(event: &Event) -> &'static str {
    match event {
        Event::CallStarted(_) => "call_started",
        Event::CallEnded(_) => "call_ended",
        Event::CallRefused(_) => "call_refused",
        Event::LimitReached { .. } => "limit_reached",
        Event::Denied(_) => "denied",
        Event::ProcessStarted { .. } => "process_started",
        Event::ProcessEnded { .. } => "process_ended",
        Event::FileOpened(_) => "file_opened",
        Event::FileChanged { .. } => "file_changed",
        Event::Connect { .. } => "connect",
        Event::NameAsked(_) => "name_asked",
        Event::ConnectionDecided(_) => "connection_decided",
        Event::HttpRequest(_) => "http_request",
        Event::ConnectionEnded(_) => "connection_ended",
        Event::EgressDropped { .. } => "egress_dropped",
        Event::Syscall(_) => "syscall",
        Event::SegmentOpened { .. } => "segment_opened",
        Event::Recovered { .. } => "recovered",
        Event::Pruned(_) => "pruned",
    }
}

/// A unit-like value as the word that it has in JSON.
pub(crate) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
