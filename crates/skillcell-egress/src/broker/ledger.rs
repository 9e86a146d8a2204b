//! What happened at the door: written to the call's journal as it happens, and the denials.

use super::journal::{Entry, Journal, Unwritten};
use skillcell_core::{Denial, DenialKind, Denials, Host, Reason};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries written per call; a flood beyond that is counted. Denials have a part of their own, so
/// that they can't take the place of what was allowed.
const MAX_ENTRIES: u64 = 400_000;
const MAX_DENIED: u64 = 100_000;

/// Everything that the broker has to say when the call ends.
#[derive(Debug, Default)]
pub struct Report {
    pub denials: Vec<Denial>,
    /// Entries beyond the number that is written.
    pub dropped: u64,
    /// Distinct hosts that connections were let through to.
    pub hosts: u64,
    /// Connections that were let through.
    pub connections: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
}

pub(crate) struct Ledger {
    journal: Arc<dyn Journal>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    denials: Denials,
    denied: u64,
    written: u64,
    dropped: u64,
    connections: u64,
    hosts: HashSet<String>,
}

impl Ledger {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Ledger {
        Ledger {
            journal,
            book: Mutex::default(),
        }
    }

    /// Writes an entry, before whoever caused it is told.
    pub(crate) fn write(&self, entry: &Entry<'_>) -> Result<(), Unwritten> {
        let denied = match entry {
            Entry::Asked(event) | Entry::Decided(event) | Entry::Ended(event) => event.denied,
            Entry::Request { denied, .. } => *denied,
            Entry::Denied { reason, .. } => Some(*reason),
        };
        {
            let book = &mut *self.book();
            let (count, most) = match denied {
                Some(_) => (&mut book.denied, MAX_DENIED),
                None => (&mut book.written, MAX_ENTRIES),
            };
            if *count >= most {
                book.dropped += 1;
                return Ok(());
            }
            *count += 1;
            if let Entry::Decided(event) = entry
                && event.denied.is_none()
            {
                book.connections += 1;
                book.hosts.insert(event.host.clone());
            }
        }
        self.journal.write(entry)
    }

    /// In the envelope's list.
    pub(crate) fn denial(&self, target: &str, reason: Reason, hint: String) {
        self.book()
            .denials
            .record(DenialKind::Network, target, reason, hint);
    }

    pub(crate) fn close(&self, (bytes_out, bytes_in): (u64, u64)) -> Report {
        let book = std::mem::take(&mut *self.book());
        Report {
            denials: book.denials.into_vec(),
            dropped: book.dropped,
            hosts: book.hosts.len() as u64,
            connections: book.connections,
            bytes_out,
            bytes_in,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
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
