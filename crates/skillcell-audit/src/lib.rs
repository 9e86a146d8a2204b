//! The record of calls: one JSON line per event, appended by the supervisor, each line carrying the
//! hash of the one before, so that an edit in the middle shows.

mod event;
mod log;

pub use event::Event;
pub use log::{AuditError, Log};
