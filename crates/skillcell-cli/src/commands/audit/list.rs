use super::ask::{ask, filter};
use super::words::{self, status_style};
use crate::args_audit_query::ListArgs;
use crate::output::{self, FAINT, Format, PLAIN, WARNING};
use crate::table::{self, Cell};
use crate::when;
use serde_json::{Value, json};
use skillcell_audit::Call;
use std::process::ExitCode;

pub(super) fn list(args: &ListArgs) -> ExitCode {
    let format = args.log.format();
    let limit = args.limit as usize;
    let answer = ask(&args.log, |index| match filter(index, &args.filter, &[])? {
        Ok(filter) => Ok(Ok(index.calls(&filter, limit.saturating_add(1))?)),
        Err(none) => Ok(Err(none)),
    });
    match answer {
        Ok(mut calls) => {
            let more = calls.len() > limit;
            calls.truncate(limit);
            match format {
                Format::Json => {
                    output::json_value(&calls.iter().map(as_json).collect::<Vec<_>>());
                }
                Format::Human if calls.is_empty() => {
                    output::line("no recorded call fits");
                }
                Format::Human => output::print(&as_table(&calls, more)),
            }
            ExitCode::SUCCESS
        }
        Err(none) => none.tell(format),
    }
}

fn as_table(calls: &[Call], more: bool) -> String {
    let rows: Vec<[Cell; 8]> = calls.iter().map(row).collect();
    let mut text = table::styled(
        [
            "time (UTC)",
            "run",
            "skill",
            "status",
            "duration",
            "denials",
            "hosts",
            "actor",
        ],
        &rows,
    );
    if more {
        text.push_str(&format!(
            "  {FAINT}older calls are not shown; see --limit{FAINT:#}\n"
        ));
    }
    text
}

fn row(call: &Call) -> [Cell; 8] {
    let status = call.status.as_deref().unwrap_or("unfinished");
    let denials = match call.denials {
        0 => Cell::new("-", FAINT),
        n => Cell::new(&n.to_string(), WARNING),
    };
    [
        Cell::new(&when::readable(call.started_us), FAINT),
        Cell::new(&call.short, PLAIN),
        Cell::new(&words::short(&skill(call), 60), PLAIN),
        Cell::new(status, status_style(Some(status))),
        Cell::new(&call.wall_ms.map_or("-".to_owned(), words::millis), PLAIN),
        denials,
        Cell::new(&words::short(&hosts(call), 60), PLAIN),
        Cell::new(
            &words::short(call.actor.as_deref().unwrap_or("-"), 40),
            PLAIN,
        ),
    ]
}

/// `category/name@version`.
pub(super) fn skill(call: &Call) -> String {
    match (&call.skill, &call.version) {
        (Some(skill), Some(version)) => format!("{skill}@{version}"),
        (Some(skill), None) => skill.clone(),
        (None, _) => "(unknown)".to_owned(),
    }
}

fn hosts(call: &Call) -> String {
    let mut hosts = call.hosts.iter().take(2).cloned().collect::<Vec<_>>();
    let more = call.hosts.len().saturating_sub(2) as u64 + call.more_hosts;
    if more > 0 {
        hosts.push(format!("+{more}"));
    }
    if hosts.is_empty() {
        "-".to_owned()
    } else {
        hosts.join(" ")
    }
}

pub(super) fn as_json(call: &Call) -> Value {
    json!({
        "run_id": call.run_id,
        "skill": call.skill,
        "version": call.version,
        "isolation": call.isolation,
        "level": call.level,
        "actor": call.actor,
        "request_id": call.request_id,
        "started": when::rfc3339(call.started_us),
        "started_us": call.started_us,
        "last_us": call.last_us,
        "status": call.status,
        "reason": call.reason,
        "wall_ms": call.wall_ms,
        "denials": call.denials,
        "events": call.events,
        "hosts": call.hosts,
        "more_hosts": call.more_hosts,
    })
}
