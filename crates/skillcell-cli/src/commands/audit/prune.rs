use super::{failure, words};
use crate::args_audit_query::PruneArgs;
use crate::output::{self, Format};
use crate::table::table;
use serde_json::json;
use skillcell_audit::{AuditError, Folder, Log, Retention, Segment, prunable};
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(super) fn prune(args: &PruneArgs) -> ExitCode {
    let format = args.log.format();
    match remove(args) {
        Ok((gone, kept)) => {
            tell(&gone, kept, args.dry_run, format);
            ExitCode::SUCCESS
        }
        Err(error) => failure(&error, format),
    }
}

/// What went, with its size; and what is left.
type Gone = Vec<(Segment, u64)>;

fn remove(args: &PruneArgs) -> Result<(Gone, u64), AuditError> {
    let folder = args.log.folder()?;
    let keep = Retention {
        keep_bytes: args.keep_size.map(|size| size.bytes()),
        keep_age: args.keep_age,
        ..Retention::default()
    };
    let sizes = sizes(&folder)?;
    let gone = if args.dry_run || sizes.is_empty() {
        prunable(&folder, &keep)?
    } else {
        Log::open(folder.clone(), Retention::default())?.prune(&keep)?
    };
    let gone: Gone = gone
        .into_iter()
        .map(|segment| {
            let size = sizes.get(&segment.number).copied().unwrap_or(0);
            (segment, size)
        })
        .collect();
    let removed: u64 = gone.iter().map(|(_, size)| size).sum();
    let all: u64 = sizes.values().sum();
    Ok((gone, all.saturating_sub(removed)))
}

fn sizes(folder: &Folder) -> Result<BTreeMap<u64, u64>, AuditError> {
    let segments = folder.segments()?.into_iter();
    Ok(segments
        .map(|s| (s.number, std::fs::metadata(&s.path).map_or(0, |m| m.len())))
        .collect())
}

fn tell(gone: &Gone, kept: u64, dry_run: bool, format: Format) {
    let removed: u64 = gone.iter().map(|(_, size)| size).sum();
    match format {
        Format::Json => output::json_value(&json!({
            "dry_run": dry_run,
            "segments": gone
                .iter()
                .map(|(segment, size)| json!({"path": segment.path, "size_bytes": size}))
                .collect::<Vec<_>>(),
            "removed_bytes": removed,
            "kept_bytes": kept,
        })),
        Format::Human if gone.is_empty() => {
            output::line("nothing to remove");
        }
        Format::Human => {
            let rows: Vec<[String; 2]> = gone
                .iter()
                .map(|(segment, size)| [segment.path.display().to_string(), words::bytes(*size)])
                .collect();
            output::print(&table(["segment", "size"], &rows));
            let would = if dry_run { "would remove" } else { "removed" };
            output::line(&format!(
                "{would} {}, kept {}",
                words::bytes(removed),
                words::bytes(kept)
            ));
        }
    }
}
