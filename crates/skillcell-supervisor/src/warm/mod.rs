//! Calls that don't wait for a start-up that was done before.
//!
//! ```text
//!  daemon ── Pool ── Keeper (a thread per template) ◄─ channel ─► nursery (a process per template)
//!              │                                                     ├─ loads the skill once: image
//!              └─ a call claims a waiting cell ◄── descriptors ──────┴─ cells that rest on the image
//! ```
//!
//! The nursery is single-threaded, because it clones; the daemon is not, and supervises. A cell is
//! made as any other, with the plan of the call that will claim it, and is used once.

mod claim;
mod keeper;
mod key;
mod nursery;
mod pool;
mod sealed;
mod template;
mod wire;

pub use key::Cold;
pub use nursery::{NURSERY_ARGV0, nursery_main};
pub use pool::{FirstCall, Pool, PoolCounts, PoolTerms};
