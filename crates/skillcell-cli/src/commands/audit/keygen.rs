use super::failure;
use crate::args_audit::KeygenArgs;
use crate::output::{self, Format, printable};
use serde_json::json;
use std::process::ExitCode;

pub(super) fn keygen(args: &KeygenArgs) -> ExitCode {
    let format = args.log.format();
    let made = args
        .log
        .new_folder()
        .and_then(|folder| skillcell_audit::keygen(&folder));
    match made {
        Ok((key, path)) => {
            match format {
                Format::Json => output::json_value(&json!({"public_key": key, "path": path})),
                Format::Human => output::print(&printable(&format!(
                    "public key {key}\nin {}; keep a copy of it elsewhere\n",
                    path.display()
                ))),
            }
            ExitCode::SUCCESS
        }
        Err(error) => failure(&error, format),
    }
}
