//! Where decisions are written down, before anybody is told of them.

use skillcell_core::{EgressEvent, Reason};

/// The record of a call, as far as the broker writes it.
pub trait Journal: Send + Sync {
    /// What can't be written down must not happen.
    fn write(&self, entry: &Entry<'_>) -> Result<(), Unwritten>;
}

/// The entry is not in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwritten;

#[derive(Debug)]
pub enum Entry<'a> {
    /// A name that was asked for.
    Asked(&'a EgressEvent),
    /// A connection that is let through or denied.
    Decided(&'a EgressEvent),
    /// A request on an inspected connection.
    Request {
        /// The one that it came by.
        connection: Option<u64>,
        host: String,
        port: u16,
        method: &'a str,
        /// Without the query.
        path: &'a str,
        denied: Option<Reason>,
    },
    /// Something is denied, whatever it was a part of.
    Denied { target: &'a str, reason: Reason },
    /// A connection that was let through is over.
    Ended(&'a EgressEvent),
}

/// Writes nothing, for what has no record of its own.
pub struct NoJournal;

impl Journal for NoJournal {
    fn write(&self, _: &Entry<'_>) -> Result<(), Unwritten> {
        Ok(())
    }
}
