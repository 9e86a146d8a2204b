//! The page itself. Everything is in it, nothing is fetched, and its policy lets only the two blocks run
//! whose hashes it has: a name that got through the escaping would still do nothing.

use super::escape::{hostile, plain};
use super::sections;
use super::units::{bytes, millis, moment};
use super::{Checked, Line, Report};
use crate::export::{VERSION, word};
use sha2::{Digest as _, Sha256};
use skillcell_core::{Digest, Status};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn page(report: &Report, checked: &Checked) -> String {
    let mut out = String::with_capacity(64 << 10);
    let name = report
        .skill()
        .and_then(|s| s.id.as_deref())
        .unwrap_or("unknown skill");
    let run = report.run_id.as_deref().unwrap_or_default();
    push(
        &mut out,
        format_args!(
            "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=referrer content=no-referrer>\n\
         <title>Run {} – Skillcell</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n",
            hash(STYLE),
            hash(SCRIPT),
            plain(run),
        ),
    );
    header(&mut out, report, name);
    facts(&mut out, report, run);
    tiles(&mut out, report);
    sections::denials(&mut out, report);
    sections::receipt(&mut out, report);
    sections::processes(&mut out, &report.processes);
    sections::network(&mut out, report);
    sections::files(&mut out, report);
    sections::syscalls(&mut out, report);
    sections::timeline(&mut out, report);
    chain(&mut out, report, checked);
    push(
        &mut out,
        format_args!(
            "<footer>Made by skillcell {VERSION} on {} from the record. Words in monospace were chosen by the skill.</footer>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            moment(checked.at_us),
        ),
    );
    out
}

pub(super) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String can't fail.
    out.write_fmt(text).unwrap_or_default();
}

pub(super) fn section(out: &mut String, id: &str, title: &str, count: Option<u64>) {
    let count = match count {
        Some(count) => format!("<span class=count>{count}</span>"),
        None => String::new(),
    };
    push(
        out,
        format_args!("<section id={id}>\n<h2>{title} {count}</h2>\n"),
    );
}

pub(super) fn left_out(out: &mut String, count: u64, what: &str) {
    if count > 0 {
        push(
            out,
            format_args!("<p class=more>{count} {what} are left out here; the log has them.</p>\n"),
        );
    }
}

fn status(report: &Report) -> (String, &'static str) {
    match report.outcome() {
        None => ("no end recorded".to_owned(), "warn"),
        Some((status, _)) => {
            let class = match status {
                Status::Ok => "good",
                Status::Denied | Status::LimitExceeded | Status::Refused => "bad",
                _ => "warn",
            };
            (word(&status).replace('_', " "), class)
        }
    }
}

fn header(out: &mut String, report: &Report, name: &str) {
    let (status, class) = status(report);
    let version = report
        .skill()
        .and_then(|s| s.version.as_deref())
        .map(|version| format!(" <small>{}</small>", hostile(version)))
        .unwrap_or_default();
    let reason = report
        .outcome()
        .and_then(|(_, reason)| reason)
        .map(|reason| format!(" <span class=pill>{reason}</span>"))
        .unwrap_or_default();
    push(
        out,
        format_args!(
            "<header>\n<h1>{}{version}</h1> <span class=\"pill {class}\">{}</span>{reason}\n<p>One run of a skill, as its supervisor recorded it.</p>\n</header>\n",
            hostile(name),
            plain(&status),
        ),
    );
}

fn facts(out: &mut String, report: &Report, run: &str) {
    out.push_str("<section id=facts>\n<dl>\n");
    let mut entry = |class: &str, name: &str, value: String| {
        push(
            out,
            format_args!("<div{class}><dt>{name}</dt><dd>{value}</dd></div>\n"),
        );
    };
    let mut fact = |name: &str, value: String| entry("", name, value);
    fact("Run", format!("<span class=hash>{}</span>", plain(run)));
    if let Some((actor, request)) = report.caller() {
        let actor = actor.as_ref().map(|a| hostile(a.as_str()));
        fact(
            "On behalf of",
            actor.unwrap_or_else(|| "nobody named".to_owned()),
        );
        if let Some(request) = request {
            fact("Request", hostile(request.as_str()));
        }
    }
    if let Some((at, _)) = &report.not_begun {
        fact("Refused", moment(*at));
    }
    if let Some((at, started)) = &report.started {
        fact("Isolation", started.isolation.to_string());
        fact("Record level", started.level.to_string());
        fact(
            "Trusted by the caller",
            if started.trusted { "yes" } else { "no" }.to_owned(),
        );
        fact("Began", moment(*at));
        if let Some((end, _)) = &report.ended {
            fact("Ended", moment(*end));
        }
    }
    let mut wide = |name: &str, digest: &Digest| {
        let value = format!("<span class=hash>{digest}</span>");
        entry(" class=wide", name, value);
    };
    if let Some(digest) = report.skill().and_then(|s| s.digest.as_ref()) {
        wide("Bundle", digest);
    }
    if let Some((_, started)) = &report.started {
        wide("Plan", &started.plan);
    }
    out.push_str("</dl>\n</section>\n");
}

fn tiles(out: &mut String, report: &Report) {
    let Some((_, ended)) = &report.ended else {
        return;
    };
    let (usage, summary) = (&ended.usage, &ended.summary);
    out.push_str("<div class=tiles>\n");
    let mut tile = |value: String, name: &str| {
        push(
            out,
            format_args!("<div class=tile><b>{value}</b><span>{name}</span></div>\n"),
        );
    };
    tile(millis(usage.wall_ms), "wall clock");
    tile(millis(usage.cpu_ms), "CPU time");
    tile(bytes(usage.peak_memory_bytes), "peak memory");
    tile(bytes(usage.bytes_out), "sent");
    tile(bytes(usage.bytes_in), "received");
    tile(summary.programs.to_string(), "programs");
    tile(summary.hosts.to_string(), "hosts");
    tile(summary.denials.to_string(), "denials");
    out.push_str("</div>\n");
}

fn chain(out: &mut String, report: &Report, checked: &Checked) {
    section(out, "chain", "In the chain", None);
    match &checked.result {
        Ok(verified) => push(
            out,
            format_args!(
                "<p><span class=\"pill good\">verified</span> The log is whole: {} lines in {} segments, {} signed checkpoints, checked on {}.</p>\n",
                verified.lines,
                verified.segments,
                verified.checkpoints,
                moment(checked.at_us),
            ),
        ),
        Err(broken) => push(
            out,
            format_args!(
                "<p><span class=\"pill bad\">not whole</span> {}</p>\n",
                hostile(&broken.to_string()),
            ),
        ),
    }
    out.push_str("<table>\n<tbody>\n");
    let mut row = |name: &str, value: String| {
        push(out, format_args!("<tr><td>{name}<td>{value}\n"));
    };
    row("Log", hostile(&checked.log));
    row("Lines of this run", report.lines.to_string());
    let place = |line: &Line| {
        format!(
            "line {} <span class=hash>{}</span>",
            line.seq,
            plain(&line.hash)
        )
    };
    if let Some(first) = &report.first {
        row("First", place(first));
    }
    if let Some(last) = &report.last {
        row("Last", place(last));
    }
    if let Ok(verified) = &checked.result
        && let Some(head) = &verified.head
    {
        row(
            "Head of the log",
            format!(
                "line {} <span class=hash>{}</span>",
                verified.last_seq,
                plain(head)
            ),
        );
    }
    out.push_str("</tbody>\n</table>\n");
    left_out(out, checked.unreadable, "lines that a newer version wrote");
    out.push_str("</section>\n");
}

/// Of a block, as a content security policy has it.
fn hash(block: &str) -> String {
    base64(&Sha256::digest(block.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let index = (group >> (18 - 6 * digit)) & 63;
            out.push(match digit <= chunk.len() {
                true => DIGITS[index as usize] as char,
                false => '=',
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
