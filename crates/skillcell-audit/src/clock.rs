//! The inside of a line: when, who, what.

use crate::record::Task;
use crate::{AuditError, Event};
use rustix::time::{ClockId, clock_gettime};
use skillcell_core::RunId;
use std::io::Write;

/// Writes everything of a line but its number and hash.
pub(crate) fn body(
    out: &mut Vec<u8>,
    run: Option<(&RunId, u64)>,
    task: Option<Task>,
    event: &Event,
) -> Result<(), AuditError> {
    // Writing to a Vec can't fail; the error type is the serializer's.
    let fault = serde_json::Error::io;
    if let Some((run, n)) = run {
        write!(out, "\"run_id\":\"{run}\",\"n\":{n},").map_err(fault)?;
    }
    let (unix, mono) = (micros(ClockId::Realtime), micros(ClockId::Monotonic));
    write!(out, "\"unix_us\":{unix},\"mono_us\":{mono},").map_err(fault)?;
    if let Some(Task { pid, tid, ppid }) = task {
        write!(out, "\"pid\":{pid},\"tid\":{tid},\"ppid\":{ppid},").map_err(fault)?;
    }
    // `{"event":…,"data":…}` without its braces.
    let start = out.len();
    serde_json::to_writer(&mut *out, event)?;
    out.pop();
    out.remove(start);
    Ok(())
}

fn micros(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}
