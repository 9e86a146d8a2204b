//! Which segments are old enough to go.

use crate::line::{self, Hash};
use crate::{AuditError, Folder, Retention, Segment};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

/// What pruning would remove now.
pub fn prunable(folder: &Folder, keep: &Retention) -> Result<Vec<Segment>, AuditError> {
    let segments = folder.segments()?;
    let active = segments.last().map_or(0, |s| s.number);
    beyond(&segments, active, keep)
}

/// The oldest segments that `keep` doesn't cover; never the active one or a later one.
pub(crate) fn beyond(
    segments: &[Segment],
    active: u64,
    keep: &Retention,
) -> Result<Vec<Segment>, AuditError> {
    let mut sized = Vec::with_capacity(segments.len());
    for segment in segments {
        let meta = std::fs::metadata(&segment.path).map_err(AuditError::io(&segment.path))?;
        sized.push((segment, meta.len(), meta.modified().ok()));
    }
    let mut total: u64 = sized.iter().map(|(_, size, _)| size).sum();
    let now = SystemTime::now();
    let mut gone = Vec::new();
    for (segment, size, changed) in sized {
        let too_much = keep.keep_bytes.is_some_and(|limit| total > limit);
        let age = changed.and_then(|at| now.duration_since(at).ok());
        let too_old = match (keep.keep_age, age) {
            (Some(limit), Some(age)) => age > limit,
            (Some(limit), None) => limit == Duration::ZERO,
            (None, _) => false,
        };
        if segment.number >= active || !(too_much || too_old) {
            break; // the chain is only ever shortened from its beginning
        }
        total -= size;
        gone.push(segment.clone());
    }
    Ok(gone)
}

/// Number and hash of a closed segment's last line.
pub(crate) fn last_line(segment: &Segment) -> Result<(u64, Hash), AuditError> {
    let error = || AuditError::io(&segment.path);
    let file = File::open(&segment.path).map_err(error())?;
    let length = file.metadata().map_err(error())?.len();
    let mut window = 8 << 10;
    loop {
        let take = length.min(window);
        let mut tail = vec![0; take as usize];
        file.read_exact_at(&mut tail, length - take)
            .map_err(error())?;
        let body = tail.strip_suffix(b"\n").unwrap_or(&tail);
        let start = body.iter().rposition(|b| *b == b'\n').map(|at| at + 1);
        if let Some(start) = start.or((take == length).then_some(0)) {
            return line::claims(&body[start..]).ok_or_else(|| {
                AuditError::changed(&segment.path, "its last line is not one of a log")
            });
        }
        if window > line::MAX_LINE as u64 {
            return Err(AuditError::changed(
                &segment.path,
                "its last line is too long to be one of a log",
            ));
        }
        window *= 8;
    }
}
