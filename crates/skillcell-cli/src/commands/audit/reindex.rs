use super::failure;
use crate::args_audit_query::ReindexArgs;
use crate::output::{self, Format, Meter, printable};
use serde_json::json;
use skillcell_audit::{AuditError, Index, Made};
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) fn reindex(args: &ReindexArgs) -> ExitCode {
    let format = args.log.format();
    match rebuild(args, format) {
        Ok((made, path)) => {
            let place = (!made.in_memory).then_some(path);
            match format {
                Format::Json => output::json_value(&json!({"lines": made.lines, "index": place})),
                Format::Human => {
                    let place = place.map_or_else(
                        || {
                            "nothing is kept: there is no log, or its folder can't be written"
                                .into()
                        },
                        |path| path.display().to_string(),
                    );
                    output::print(&printable(&format!(
                        "{} lines indexed\n{place}\n",
                        made.lines
                    )));
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => failure(&error, format),
    }
}

fn rebuild(args: &ReindexArgs, format: Format) -> Result<(Made, PathBuf), AuditError> {
    let folder = args.log.folder()?;
    let mut meter = Meter::new("indexing the log", format);
    let index = Index::rebuild(&folder, &mut |p| meter.set(p.done, p.total))?;
    Ok((index.made(), folder.index()))
}
