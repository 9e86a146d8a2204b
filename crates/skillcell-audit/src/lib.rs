//! The record of calls: one JSON line per event, written by the supervisor, in a chain of hashes so
//! that a change anywhere shows. Layout and promises: `docs/architecture/audit.md`.

mod clock;
mod error;
mod event;
pub mod export;
mod folder;
mod head;
mod index;
mod line;
mod log;
mod prune;
mod read;
mod record;
mod recorder;
pub mod report;
mod sign;
mod text;
mod verify;

pub use error::AuditError;
pub use event::{
    Access, Anchor, CallEnded, CallRefused, CallStarted, Change, ConnectionDecided, Denied, Event,
    FileOpened, HttpRequest, Summary, Syscall,
};
pub use folder::{Folder, Segment};
pub use index::{
    Call, Count, Durations, Filter, Found, Index, Made, Progress, Rebuilt, SkillStats, Stats, Watch,
};
pub use log::{Log, Retention};
pub use prune::prunable;
pub use read::{Lines, Position, before_last, parse};
pub use record::{Record, Task};
pub use recorder::{OnFailure, RecordFailed, Recorder};
pub use sign::{Checkpoint, keygen};
pub use text::{Redactor, Text};
pub use verify::{Broken, Expectation, Verified, verify};
