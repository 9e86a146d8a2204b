//! The system call filter: an allow list, kept as data with a reason per entry.
//!
//! What is not listed is denied and, where the kernel can hand it over, reported: the filter answers
//! `USER_NOTIF` and the supervisor records the call before it answers with an errno. Calls that the
//! kernel itself decides (writes, connections) can be watched the same way; the supervisor then says
//! "continue", so a race over their arguments changes a record, never a decision.

mod bpf;
mod memory;
mod names;
mod notify;
mod recorded;
mod table;

pub(crate) use bpf::Pass;
pub use bpf::{AllowList, Filter, Verdict};
pub use names::syscall_name;
pub use notify::{Answer, Listener, Notification, Received};
pub use recorded::Recorded;
pub use table::{OwnerlessMemory, Profile, Sockets, UnixSockets};
