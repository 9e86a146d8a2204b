//! The parts of the page that show what the run did.

use super::Report;
use super::escape::{hostile, plain};
use super::html::{left_out, push, section};
use super::processes::{Process, Processes};
use super::timeline::{GROUPS, arguments};
use super::units::{bytes, count, millis, some};
use crate::export::word;
use skillcell_core::EnforcementStatus;

/// Processes deeper than this stand beside their parents.
const MAX_DEPTH: usize = 24;

pub(super) fn denials(out: &mut String, report: &Report) {
    let denials = report.denials();
    section(out, "denials", "Denials", Some(denials.len() as u64));
    if denials.is_empty() {
        out.push_str("<p class=none>Nothing was denied.</p>\n</section>\n");
        return;
    }
    out.push_str("<table>\n<thead><tr><th>Kind<th>Target<th>Reason<th class=num>Times<th>What would allow it</thead>\n<tbody>\n");
    for denial in &denials {
        let hint = denial.hint.as_deref().unwrap_or_default();
        push(
            out,
            format_args!(
                "<tr><td>{}<td>{}<td class=bad>{}<td class=num>{}<td>{}\n",
                denial.kind,
                hostile(&denial.target),
                denial.reason,
                denial.count,
                hostile(hint),
            ),
        );
    }
    out.push_str("</tbody>\n</table>\n");
    left_out(out, report.refused_left_out, "more denials");
    out.push_str("</section>\n");
}

pub(super) fn receipt(out: &mut String, report: &Report) {
    let lines = report
        .started
        .as_ref()
        .map(|(_, s)| s.enforcement.as_slice());
    let lines = lines.unwrap_or_default();
    section(
        out,
        "receipt",
        "What held the run",
        Some(lines.len() as u64),
    );
    if report.not_begun.is_some() {
        out.push_str("<p class=none>Nothing ran: the call was refused before it began.</p>\n");
    } else if lines.is_empty() {
        out.push_str("<p class=none>The beginning of the run, which has its receipt, is not in the log.</p>\n");
    } else {
        out.push_str("<table>\n<thead><tr><th>Control<th>Held by<th>Status</thead>\n<tbody>\n");
        for line in lines {
            let class = match line.status {
                EnforcementStatus::Enforced => "good",
                EnforcementStatus::Degraded => "bad",
            };
            push(
                out,
                format_args!(
                    "<tr><td>{}<td>{}<td><span class=\"pill {class}\">{}</span>\n",
                    line.control,
                    plain(&line.mechanism),
                    word(&line.status),
                ),
            );
        }
        out.push_str("</tbody>\n</table>\n");
    }
    out.push_str("</section>\n");
}

pub(super) fn processes(out: &mut String, processes: &Processes) {
    section(
        out,
        "processes",
        "Processes",
        Some(processes.all.len() as u64),
    );
    if processes.all.is_empty() {
        out.push_str("<p class=none>No program start was recorded; the level <code>security</code> has them.</p>\n");
    } else {
        out.push_str("<ul class=tree>\n");
        for (index, process) in processes.children(None) {
            branch(out, processes, index, process, 0);
        }
        out.push_str("</ul>\n");
    }
    left_out(out, processes.left_out, "more program starts");
    out.push_str("</section>\n");
}

fn branch(out: &mut String, all: &Processes, index: usize, process: &Process, depth: usize) {
    out.push_str("<li>");
    for (at, program) in process.programs.iter().enumerate() {
        if at > 0 {
            out.push_str("<br>⤷ ");
        }
        let argv = program.argv.iter().map(String::as_str);
        push(
            out,
            format_args!(
                "{} <span class=dim>{}</span>",
                hostile(&program.path),
                arguments(argv, program.argc),
            ),
        );
    }
    let end = match process.code {
        Some(0) => "exit code 0".to_owned(),
        Some(code) => format!("<span class=bad>exit code {code}</span>"),
        None => "no exit of its own".to_owned(),
    };
    push(
        out,
        format_args!(" <span class=dim>· {} · {end}</span>", process.pid),
    );
    let mut children = all.children(Some(index)).peekable();
    if children.peek().is_some() {
        let (open, close) = match depth < MAX_DEPTH {
            true => ("<ul>\n", "</ul>"),
            false => ("</li>\n", ""),
        };
        out.push_str(open);
        for (index, child) in children {
            branch(out, all, index, child, depth + 1);
        }
        out.push_str(close);
    }
    out.push_str("</li>\n");
}

pub(super) fn network(out: &mut String, report: &Report) {
    let network = &report.network;
    section(out, "hosts", "Hosts", Some(network.hosts.len() as u64));
    if network.hosts.is_empty() {
        out.push_str("<p class=none>No name was asked for, and no connection was made.</p>\n");
    } else {
        out.push_str("<table>\n<thead><tr><th>Host<th>Addresses<th class=num>Names asked<th class=num>Connections<th class=num>Requests<th class=num>Bytes out<th class=num>Bytes in<th class=num>Time<th>Denied</thead>\n<tbody>\n");
        for (name, host) in &network.hosts {
            let addresses: Vec<&str> = host.addresses.iter().map(String::as_str).collect();
            let denied: Vec<String> = host.reasons.iter().map(ToString::to_string).collect();
            let denied = match host.denied {
                0 => String::new(),
                times => format!("<span class=bad>{times} × {}</span>", denied.join(", ")),
            };
            push(
                out,
                format_args!(
                    "<tr><td>{}<td class=mono>{}<td class=num>{}<td class=num>{}<td class=num>{}<td class=num>{}<td class=num>{}<td class=num>{}<td>{denied}\n",
                    hostile(name),
                    plain(&addresses.join(" ")),
                    count(host.names),
                    count(host.connections),
                    count(host.requests),
                    some(host.bytes_out, bytes),
                    some(host.bytes_in, bytes),
                    some(host.millis, millis),
                ),
            );
        }
        out.push_str("</tbody>\n</table>\n");
    }
    left_out(out, network.left_out, "events of more hosts");
    if network.dropped > 0 {
        push(
            out,
            format_args!(
                "<p class=more>{} more names and connections than are recorded for one call.</p>\n",
                network.dropped
            ),
        );
    }
    out.push_str("</section>\n");
}

pub(super) fn files(out: &mut String, report: &Report) {
    let files = &report.files;
    section(out, "files", "Files", Some(files.all.len() as u64));
    if files.all.is_empty() {
        out.push_str("<p class=none>No opened file was recorded; the level <code>security</code> has those for writing and outside of the skill’s own folders.</p>\n");
    }
    for (written, title) in [(true, "Written or changed"), (false, "Read")] {
        let wanted: Vec<_> = files
            .all
            .iter()
            .filter(|(_, f)| f.is_written() == written)
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let open = if written || wanted.len() <= 30 {
            " open"
        } else {
            ""
        };
        push(
            out,
            format_args!(
                "<details{open}><summary>{title} <span class=dim>{}</span></summary>\n<table>\n<thead><tr><th>Path<th class=num>Opened to read<th class=num>to write<th>Changes</thead>\n<tbody>\n",
                wanted.len()
            ),
        );
        for (path, file) in wanted {
            let changes: Vec<&str> = file.changes.iter().map(String::as_str).collect();
            push(
                out,
                format_args!(
                    "<tr><td>{}<td class=num>{}<td class=num>{}<td>{}\n",
                    hostile(path),
                    count(file.reads),
                    count(file.writes),
                    plain(&changes.join(", ")),
                ),
            );
        }
        out.push_str("</tbody>\n</table>\n</details>\n");
    }
    left_out(out, files.left_out, "events of more files");
    out.push_str("</section>\n");
}

pub(super) fn syscalls(out: &mut String, report: &Report) {
    let counts = report.ended.as_ref().map(|(_, e)| &e.summary.syscalls);
    let total: u64 = counts.map(|c| c.values().sum()).unwrap_or_default();
    section(out, "syscalls", "System calls", Some(total));
    match counts {
        Some(counts) if !counts.is_empty() => {
            let most = counts.values().copied().max().unwrap_or(1).max(1);
            let mut sorted: Vec<_> = counts.iter().collect();
            sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
            out.push_str("<table>\n<thead><tr><th>Class<th class=num>Calls<th></thead>\n<tbody>\n");
            for (name, count) in sorted {
                push(
                    out,
                    format_args!(
                        "<tr><td>{}<td class=num>{count}<td><progress value={count} max={most}>{count}</progress>\n",
                        hostile(name),
                    ),
                );
            }
            out.push_str("</tbody>\n</table>\n");
        }
        _ => out.push_str("<p class=none>None were counted.</p>\n"),
    }
    out.push_str("</section>\n");
}

pub(super) fn timeline(out: &mut String, report: &Report) {
    let timeline = &report.timeline;
    let begin = report.first.as_ref().map_or(0, |line| line.unix_us);
    section(out, "timeline", "Timeline", Some(report.lines));
    out.push_str("<div class=filters>\n");
    for (group, title) in GROUPS {
        push(
            out,
            format_args!("<label><input type=checkbox id=show-{group} checked> {title}</label>\n"),
        );
    }
    out.push_str("<input type=search id=find placeholder=\"find in these rows\" aria-label=\"find in these rows\" autocomplete=off hidden>\n</div>\n");
    out.push_str("<table class=timeline>\n<thead><tr><th class=num>After<th>Event<th class=num>Process<th>What</thead>\n<tbody>\n");
    for row in &timeline.rows {
        let after = row.unix_us.saturating_sub(begin);
        let pid = row.pid.map(|p| p.to_string()).unwrap_or_default();
        push(
            out,
            format_args!(
                "<tr class={}><td class=when title=\"event {}\">{}.{:06} s<td class=kind>{}<td class=num>{pid}<td>{}\n",
                row.group,
                row.n,
                after / 1_000_000,
                after % 1_000_000,
                row.kind.replace('_', " "),
                row.what,
            ),
        );
    }
    out.push_str("</tbody>\n</table>\n");
    let total: u64 = timeline.left_out.values().sum();
    if total > 0 {
        let kinds: Vec<String> = timeline
            .left_out
            .iter()
            .map(|(kind, count)| format!("{count} {}", kind.replace('_', " ")))
            .collect();
        push(
            out,
            format_args!(
                "<p class=more id=left-out>{total} events are left out here ({}); <code>skillcell audit export --format jsonl</code> has all of them.</p>\n",
                kinds.join(", ")
            ),
        );
    }
    out.push_str("</section>\n");
}
