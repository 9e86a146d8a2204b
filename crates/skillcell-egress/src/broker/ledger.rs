//! What happened at the door: one event per question and connection, and the denials.

use skillcell_core::{Denial, DenialKind, Denials, EgressEvent, Host, Reason};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Events kept per call; a flood beyond that is counted. Denials have a part of their own, so that
/// they can't take the place of what was allowed.
const MAX_EVENTS: usize = 10_000;
const MAX_DENIED: usize = 2_000;

/// Everything that the broker has to say when the call ends.
#[derive(Debug, Default)]
pub struct Report {
    pub denials: Vec<Denial>,
    pub events: Vec<EgressEvent>,
    /// Events beyond the number that is kept.
    pub events_dropped: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    denials: Denials,
    events: Vec<EgressEvent>,
    denied: usize,
    allowed: usize,
    dropped: u64,
}

impl Ledger {
    pub(crate) fn event(&self, event: EgressEvent) {
        let book = &mut *self.book();
        let (kept, most) = match event.denied {
            Some(_) => (&mut book.denied, MAX_DENIED),
            None => (&mut book.allowed, MAX_EVENTS),
        };
        if *kept < most {
            *kept += 1;
            book.events.push(event);
        } else {
            book.dropped += 1;
        }
    }

    pub(crate) fn denial(&self, target: &str, reason: Reason, hint: String) {
        self.book()
            .denials
            .record(DenialKind::Network, target, reason, hint);
    }

    pub(crate) fn close(&self, (bytes_out, bytes_in): (u64, u64)) -> Report {
        let book = std::mem::take(&mut *self.book());
        Report {
            denials: book.denials.into_vec(),
            events: book.events,
            events_dropped: book.dropped,
            bytes_out,
            bytes_in,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client wrote in place of a host, no longer than a host can be.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 255;
    text.chars().take(LONGEST).collect()
}

/// `host:port` as people write it.
pub(crate) fn target(host: &Host, port: Option<u16>) -> String {
    match (host, port) {
        (Host::Addr(IpAddr::V6(v6)), Some(port)) => format!("[{v6}]:{port}"),
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_string(),
    }
}
