//! What came of a call: one status, one error with a way forward, the result as the skill gave it.

use crate::call::limit_words;
use crate::result::{self, Frame, Report};
use crate::watch::{End, Observed};
use crate::{Ready, Request};
use rustix::io::Errno;
use serde_json::value::RawValue;
use skillcell_core::{Captured, ErrorBody, Reason, Status};
use skillcell_linux::cell::Exit;
use skillcell_manifest::Entry;
use std::path::PathBuf;

pub(crate) struct Verdict {
    pub(crate) status: Status,
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) error: Option<ErrorBody>,
}

impl Verdict {
    fn failed(
        status: Status,
        code: Reason,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Verdict {
        Verdict {
            status,
            result: None,
            error: Some(ErrorBody {
                code,
                message: message.into(),
                hint,
            }),
        }
    }
}

pub(crate) fn judge(ready: &Ready, observed: &Observed, request: &Request) -> Verdict {
    let limit = |reason| {
        let (message, hint) = limit_words(reason, &ready.plan);
        Verdict::failed(Status::LimitExceeded, reason, message, Some(hint))
    };
    let mut verdict = match &observed.end {
        End::Limit(reason) => return limit(*reason),
        End::Interrupted => {
            return Verdict::failed(
                Status::InternalError,
                Reason::Internal,
                "the call was interrupted",
                None,
            );
        }
        End::NotExecuted(error) => {
            return Verdict::failed(
                Status::Refused,
                Reason::ControlUnavailable,
                error.to_string(),
                None,
            );
        }
        End::Unrecorded => {
            return Verdict::failed(
                Status::Refused,
                Reason::AuditUnavailable,
                "the call was ended, because what it did could no longer be recorded",
                observed.unrecorded.clone(),
            );
        }
        End::Vanished => Verdict::failed(
            Status::InternalError,
            Reason::Internal,
            "the cell ended without a word",
            None,
        ),
        End::Exited(exit) => match &ready.bundle.manifest.entry {
            Entry::PythonClass { .. } => from_class(observed, *exit),
            Entry::Command { .. } => from_command(observed, *exit),
            Entry::Script { .. } | Entry::None => from_script(observed, *exit),
        },
    };
    // The kernel killed something for memory: whatever the rest says, the limit was exceeded.
    if observed.limit_met == Some(Reason::MemoryExceeded) {
        return limit(Reason::MemoryExceeded);
    }
    if verdict.status != Status::Ok
        && let Some(reason) = observed.limit_met
    {
        return limit(reason);
    }
    if verdict.status == Status::SkillError && scratch_was_full(observed) {
        return limit(Reason::ScratchExceeded);
    }
    weigh_denials(&mut verdict, ready, observed, request);
    verdict
}

/// A call that failed after denials was denied; one that succeeded is only where the caller says so.
pub(crate) fn weigh_denials(
    verdict: &mut Verdict,
    ready: &Ready,
    observed: &Observed,
    request: &Request,
) {
    let tried = !observed.denials.is_empty();
    let any = tried || !ready.plan.denials.is_empty();
    match verdict.status {
        Status::SkillError if tried => verdict.status = Status::Denied,
        Status::Ok if request.strict_denials && any => {
            verdict.status = Status::Denied;
            verdict.error = Some(ErrorBody {
                code: Reason::StrictDenials,
                message: "the skill answered, but not everything that it tried was allowed (--strict-denials)".into(),
                hint: Some("its answer may be wrong for lack of what was denied; see `denials`".into()),
            });
        }
        _ => {}
    }
}

fn from_class(observed: &Observed, exit: Exit) -> Verdict {
    match result::from_frame(&observed.result) {
        Frame::Value(value) => from_value(value),
        Frame::Invalid(code, reason) => Verdict::failed(Status::InvalidResult, code, reason, None),

        Frame::Failed(report) => from_report(report),
        Frame::Missing => ended(observed, exit),
    }
}

fn from_value(value: Box<RawValue>) -> Verdict {
    match result::reported_error(&value) {
        Some(message) => Verdict {
            result: Some(value),
            ..Verdict::failed(
                Status::SkillError,
                Reason::SkillReportedError,
                message,
                None,
            )
        },
        None => Verdict {
            status: Status::Ok,
            result: Some(value),
            error: None,
        },
    }
}

/// Scratch is the only place that can be full or too small for a file. The skill may say so without
/// cause; then it is its own call that it mislabels.
fn scratch_was_full(observed: &Observed) -> bool {
    const FULL: [Errno; 3] = [Errno::NOSPC, Errno::FBIG, Errno::DQUOT];
    match result::from_frame(&observed.result) {
        Frame::Failed(report) => FULL
            .iter()
            .any(|e| report.errno == Some(e.raw_os_error().into())),
        _ => false,
    }
}

fn from_report(report: Report) -> Verdict {
    let mut message = if report.kind == "LoadError" {
        report.message.clone()
    } else {
        format!("{}: {}", report.kind, report.message)
    };
    for frame in &report.frames {
        message.push_str("\n  ");
        message.push_str(frame);
    }
    if report.stage == "result" {
        return Verdict::failed(
            Status::InvalidResult,
            Reason::ResultNotJson,
            format!("the result is not JSON: {message}"),
            None,
        );
    }
    let hint = report.module.map(|module| {
        let top = module.split('.').next().unwrap_or_default().to_owned();
        format!("add the package that has `{top}` to `requirements` in the manifest, or use --deps with an environment that has it")
    });
    let code = if report.stage == "load" {
        Reason::SkillLoad
    } else {
        Reason::SkillException
    };
    Verdict::failed(Status::SkillError, code, message, hint)
}

fn ended(observed: &Observed, exit: Exit) -> Verdict {
    let (code, mut message) = match exit {
        Exit::Code(0) => (
            Reason::SkillNoResult,
            "the skill ended without a result".to_owned(),
        ),
        Exit::Code(n) => (Reason::SkillExit, format!("the skill exited with code {n}")),
        Exit::Signal(n) => (
            Reason::SkillSignal,
            format!("the skill was ended by signal {n}{}", signal_name(n)),
        ),
    };
    if let Some(line) = last_line(&observed.stderr) {
        message.push_str(": ");
        message.push_str(&line);
    }
    Verdict::failed(Status::SkillError, code, message, None)
}

fn from_command(observed: &Observed, exit: Exit) -> Verdict {
    if exit != Exit::Code(0) {
        return ended(observed, exit);
    }
    if observed.stdout.iter().all(u8::is_ascii_whitespace) {
        return ended(observed, exit);
    }
    match std::str::from_utf8(&observed.stdout)
        .map_err(|_| {
            (
                Reason::ResultNotJson,
                "the result is not JSON: it is not UTF-8".to_owned(),
            )
        })
        .and_then(result::check_json)
    {
        Ok(value) => from_value(value),
        Err((code, reason)) => Verdict::failed(
            Status::InvalidResult,
            code,
            reason,
            Some("a command must print one JSON value on stdout and nothing else".into()),
        ),
    }
}

fn from_script(observed: &Observed, exit: Exit) -> Verdict {
    let text = String::from_utf8_lossy(&observed.stdout);
    if exit == Exit::Code(0)
        && let Ok(value) = result::check_json(&text)
    {
        return from_value(value);
    }
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    let plain =
        serde_json::value::to_raw_value(&serde_json::json!({"stdout": text, "exit_code": code}))
            .ok();
    if exit == Exit::Code(0) {
        return Verdict {
            status: Status::Ok,
            result: plain,
            error: None,
        };
    }
    Verdict {
        result: plain,
        ..ended(observed, exit)
    }
}

/// Paths of the process level's staging folders, shown as what they stand for.
pub(crate) fn moved_back(result: Box<RawValue>, moves: &[(PathBuf, PathBuf)]) -> Box<RawValue> {
    let mut text = result.get().to_owned();
    for (from, to) in moves {
        let quote =
            |path: &PathBuf| serde_json::to_string(&path.to_string_lossy()).unwrap_or_default();
        let (staged, host) = (quote(to), quote(from));
        text = text.replace(staged.trim_matches('"'), host.trim_matches('"'));
    }
    RawValue::from_string(text).unwrap_or(result)
}

pub(crate) fn captured(stdout: &[u8], stderr: &[u8]) -> Captured {
    Captured {
        stdout: String::from_utf8_lossy(stdout).into_owned(),
        stderr: String::from_utf8_lossy(stderr).into_owned(),
    }
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|l| !l.trim().is_empty())?.trim();
    Some(line.chars().take(300).collect())
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        9 => " (killed)",
        11 => " (segmentation fault)",
        15 => " (terminated)",
        25 => " (file larger than scratch)",
        31 => " (forbidden system call)",
        _ => "",
    }
}
