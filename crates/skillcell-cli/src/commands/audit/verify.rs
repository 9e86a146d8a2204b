use super::failure;
use super::words::count;
use crate::args_audit::VerifyArgs;
use crate::output::{self, Format, printable};
use serde_json::json;
use skillcell_audit::{AuditError, Broken, Expectation, Verified};
use skillcell_core::Status;
use std::process::ExitCode;

pub(super) fn verify(args: &VerifyArgs) -> ExitCode {
    let format = args.log.format();
    match check(args) {
        Ok(Ok(verified)) => {
            match format {
                Format::Json => output::json_value(&as_json(&verified)),
                Format::Human => output::print(&format!("{}\n", printable(&as_text(&verified)))),
            }
            ExitCode::SUCCESS
        }
        Ok(Err(broken)) => {
            tell(&broken, format);
            ExitCode::from(Status::Denied.exit_code())
        }
        Err(error) => failure(&error, format),
    }
}

fn check(args: &VerifyArgs) -> Result<Result<Verified, Broken>, AuditError> {
    let key = match &args.public_key {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| AuditError::Io {
                path: path.clone(),
                source,
            })?;
            Some(text.trim().to_owned())
        }
        None => None,
    };
    let expectation = Expectation {
        heads: args.head.clone(),
        key,
    };
    skillcell_audit::verify(&args.log.folder()?, &expectation)
}

fn tell(broken: &Broken, format: Format) {
    match format {
        Format::Json => output::json_value(&json!({
            "whole": false,
            "file": broken.file,
            "line": broken.line,
            "what": broken.what,
        })),
        Format::Human => {
            output::print(&format!("{}\n", printable(&format!("NOT WHOLE: {broken}"))))
        }
    }
}

fn as_json(verified: &Verified) -> serde_json::Value {
    json!({
        "whole": true,
        "segments": verified.segments,
        "lines": verified.lines,
        "first_seq": verified.first_seq,
        "last_seq": verified.last_seq,
        "head": verified.head,
        "checkpoints": verified.checkpoints,
        "signed_seq": verified.signed_seq,
        "torn_bytes": verified.torn_bytes,
    })
}

fn as_text(verified: &Verified) -> String {
    let Some(head) = &verified.head else {
        return "the log is empty".to_owned();
    };
    let mut text = format!(
        "whole: {} in {}, {}\nhead {head}",
        count(verified.lines, "line", "lines"),
        count(verified.segments, "segment", "segments"),
        count(
            verified.checkpoints,
            "signed checkpoint",
            "signed checkpoints"
        )
    );
    if let Some(signed) = verified.signed_seq.filter(|s| *s < verified.last_seq) {
        text.push_str(&format!(
            "\nlines after {signed} are chained, but not signed: right while a call goes on, or after one was killed"
        ));
    }
    if verified.first_seq > 1 {
        text.push_str(&format!(
            "\nlines before {} were pruned, as the log itself says",
            verified.first_seq
        ));
    }
    if verified.torn_bytes > 0 {
        text.push_str("\na writer was stopped in the middle of its last line, which doesn't count");
    }
    text
}
