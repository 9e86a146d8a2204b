//! Questions to the index, from what was typed.

use super::failure;
use crate::args_audit::LogArgs;
use crate::args_audit_query::FilterArgs;
use crate::output::{self, Format, Meter};
use skillcell_audit::{AuditError, Call, Filter, Folder, Index, Made, Rebuilt};
use skillcell_core::{ErrorBody, Reason, RunId, Status};
use std::process::ExitCode;

/// Why there is no answer.
pub(super) enum NoAnswer {
    Log(AuditError),
    /// What was asked for makes no sense here.
    Usage {
        message: String,
        hint: String,
    },
}

impl From<AuditError> for NoAnswer {
    fn from(error: AuditError) -> NoAnswer {
        NoAnswer::Log(error)
    }
}

impl NoAnswer {
    pub(super) fn tell(&self, format: Format) -> ExitCode {
        match self {
            NoAnswer::Log(error) => failure(error, format),
            NoAnswer::Usage { message, hint } => {
                let body = ErrorBody {
                    code: Reason::InvalidUsage,
                    message: message.clone(),
                    hint: Some(hint.clone()),
                };
                output::failure(Status::InvalidInput, &body, format)
            }
        }
    }
}

/// Asks the log's index, which is brought up to date first.
pub(super) fn ask<T>(
    args: &LogArgs,
    mut question: impl FnMut(&Index) -> Result<Result<T, NoAnswer>, AuditError>,
) -> Result<T, NoAnswer> {
    let folder = args.folder()?;
    let mut meter = Meter::new("indexing the log", args.format());
    let mut watch = |p: skillcell_audit::Progress| meter.set(p.done, p.total);
    let (answer, made) = Index::ask(&folder, &mut watch, &mut question)?;
    drop(meter);
    remark(&folder, made);
    answer
}

/// What an operator should know of the index.
fn remark(folder: &Folder, made: Made) {
    if made.rebuilt == Some(Rebuilt::Damaged) {
        output::warning("the index was damaged, and was made again from the log");
    }
    if made.in_memory && folder.path().exists() {
        output::warning("the log's folder can't be written, so its index was made in memory");
    }
}

/// The one call whose id begins so.
pub(super) fn call(index: &Index, run: &str) -> Result<Result<Call, NoAnswer>, AuditError> {
    let mut calls = if run == "last" {
        index.calls(&Filter::default(), 1)?
    } else {
        index.runs(run)?
    };
    let usage = |message, hint: &str| {
        Ok(Err(NoAnswer::Usage {
            message,
            hint: hint.to_owned(),
        }))
    };
    let shown: String = run.chars().take(100).collect();
    match calls.len() {
        1 => Ok(Ok(calls.remove(0))),
        0 if run == "last" => usage(
            format!("no call is recorded in {}", index.folder().path().display()),
            "another log is read with --log",
        ),
        0 => usage(
            format!("no recorded call has an id that begins with `{shown}`"),
            "`skillcell audit list` shows the ids",
        ),
        _ => {
            let ids: Vec<&str> = calls.iter().map(|c| c.run_id.as_str()).collect();
            usage(
                format!(
                    "`{shown}` is the beginning of several ids: {}",
                    ids.join(", ")
                ),
                "write more of it",
            )
        }
    }
}

/// The filter, with the call that it names.
pub(super) fn filter(
    index: &Index,
    args: &FilterArgs,
    text: &[String],
) -> Result<Result<Filter, NoAnswer>, AuditError> {
    let run: Option<RunId> = match &args.run {
        None => None,
        Some(run) => match call(index, run)? {
            Ok(call) => Some(call.run_id),
            Err(none) => return Ok(Err(none)),
        },
    };
    let mut words = Vec::new();
    for word in text.iter().flat_map(|t| t.split_whitespace()) {
        if !word.chars().any(char::is_alphanumeric) {
            return Ok(Err(NoAnswer::Usage {
                message: format!("`{word}` has no letter or digit to search for"),
                hint: "write words, such as passwd or /etc/passwd".to_owned(),
            }));
        }
        words.push(word.to_owned());
    }
    Ok(Ok(Filter {
        text: words,
        skill: args.skill.clone(),
        status: args.status.clone(),
        since_us: args.since,
        until_us: args.until,
        host: args.host.clone(),
        path: args.path.clone(),
        syscall: args.syscall.clone(),
        reason: args.reason.clone(),
        event: args.event.clone(),
        run,
        actor: args.actor.clone(),
        request_id: args.request_id.clone(),
    }))
}
