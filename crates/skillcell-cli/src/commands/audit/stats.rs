use super::ask::{ask, filter};
use super::words::{self, status_style};
use crate::args_audit_query::StatsArgs;
use crate::output::{self, Format, PLAIN, WARNING};
use crate::table::{self, Cell, heading, table};
use crate::when;
use skillcell_audit::{Count, Durations, Stats};
use std::process::ExitCode;

pub(super) fn stats(args: &StatsArgs) -> ExitCode {
    let format = args.log.format();
    let answer = ask(&args.log, |index| match filter(index, &args.filter, &[])? {
        Ok(filter) => Ok(Ok(index.stats(&filter, args.limit as usize)?)),
        Err(none) => Ok(Err(none)),
    });
    match answer {
        Ok(stats) => {
            match format {
                Format::Json => output::json_value(&stats),
                Format::Human if stats.calls == 0 => {
                    output::line("no recorded call fits");
                }
                Format::Human => output::print(&as_text(&stats)),
            }
            ExitCode::SUCCESS
        }
        Err(none) => none.tell(format),
    }
}

fn as_text(stats: &Stats) -> String {
    let mut text = format!(
        "{} calls with {} events and {} denials",
        stats.calls, stats.events, stats.denials
    );
    if let (Some(first), Some(last)) = (stats.first_us, stats.last_us) {
        let (first, last) = (when::readable(first), when::readable(last));
        text.push_str(&format!(", from {first} to {last} (UTC)"));
    }
    text.push_str("\n\n");
    let rows: Vec<[Cell; 2]> = stats
        .statuses
        .iter()
        .map(|s| {
            [
                Cell::new(&s.name, status_style(Some(&s.name))),
                Cell::new(&s.calls.to_string(), PLAIN),
            ]
        })
        .collect();
    text.push_str(&table::styled(["status", "calls"], &rows));
    text.push('\n');
    let mut rows: Vec<[Cell; 8]> = stats
        .skills
        .iter()
        .map(|s| {
            let name = s.skill.as_deref().unwrap_or("(unknown)");
            skill_row(name, s.calls, s.ok, s.denials, &s.durations)
        })
        .collect();
    let ok = stats.statuses.iter().find(|s| s.name == "ok");
    let ok = ok.map_or(0, |s| s.calls);
    rows.push(skill_row(
        "all",
        stats.calls,
        ok,
        stats.denials,
        &stats.durations,
    ));
    let head = [
        "skill", "calls", "ok", "denials", "p50", "p90", "p99", "max",
    ];
    text.push_str(&table::styled(head, &rows));
    for (title, counts) in [
        ("denials by reason", &stats.denials_by_reason),
        ("hosts", &stats.hosts),
        ("files", &stats.paths),
        ("system calls, recorded", &stats.syscalls),
        ("system calls, by class", &stats.syscall_classes),
        ("events", &stats.kinds),
    ] {
        if !counts.is_empty() {
            text.push('\n');
            text.push_str(&heading(title));
            text.push_str(&counted(counts));
        }
    }
    text
}

fn skill_row(name: &str, calls: u64, ok: u64, denials: u64, durations: &Durations) -> [Cell; 8] {
    let number = |n: u64| Cell::new(&n.to_string(), PLAIN);
    let time = |ms: Option<u64>| Cell::new(&ms.map_or("-".to_owned(), words::millis), PLAIN);
    let denials_style = if denials > 0 { WARNING } else { PLAIN };
    [
        Cell::new(&words::short(name, 60), PLAIN),
        number(calls),
        number(ok),
        Cell::new(&denials.to_string(), denials_style),
        time(durations.p50_ms),
        time(durations.p90_ms),
        time(durations.p99_ms),
        time(durations.max_ms),
    ]
}

fn counted(counts: &[Count]) -> String {
    let rows: Vec<[String; 3]> = counts
        .iter()
        .map(|c| {
            [
                words::short(&c.name, 100),
                c.count.to_string(),
                format!("in {}", words::count(c.calls, "call", "calls")),
            ]
        })
        .collect();
    table(["", "", ""], &rows)
}
