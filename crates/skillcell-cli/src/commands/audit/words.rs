//! Events in words, one line each. Everything that a skill chose is escaped and cut on its way here.

use crate::output::{ERROR, FAINT, GOOD, HINT, PLAIN, WARNING, one_line};
use crate::when;
use anstyle::Style;
use serde::Deserialize;
use serde_json::value::RawValue;
use skillcell_audit::{
    Access, CallEnded, CallRefused, Change, Denied, Event, Syscall, Text, parse,
};
use skillcell_core::{Denial, EgressEvent, SkillRef, Status};

/// Characters of one word that are shown; `--json` has all.
const WORD: usize = 200;
/// Arguments of a program that are shown.
const ARGS: usize = 24;

/// A line of the log as one line for people.
pub(super) fn line(text: &[u8], skill: Option<&str>) -> String {
    let Ok(record) = parse(text) else {
        return unknown(text);
    };
    let time = when::readable(record.unix_us);
    let run = record.run_id.as_ref().map_or("-", |r| r.as_str());
    let run: String = run.chars().take(12).collect();
    let skill = short(skill.unwrap_or("-"), 40);
    let pid = record.pid.map_or("-".to_owned(), |p| p.to_string());
    let (style, words) = event(&record.event);
    format!(
        "{FAINT}{time}{FAINT:#} {run:12} {skill}  {FAINT}{pid:>7}{FAINT:#}  {style}{words}{style:#}"
    )
}

/// What a newer version, or somebody else, wrote.
fn unknown(text: &[u8]) -> String {
    let text = short(&String::from_utf8_lossy(text), WORD);
    format!("{WARNING}not understood{WARNING:#} {text}")
}

/// The run of a line, and the skill where it says that its call begins.
pub(super) fn run_of(text: &[u8]) -> (Option<String>, Option<String>) {
    #[derive(Deserialize)]
    struct Line<'a> {
        run_id: Option<String>,
        event: &'a str,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Begun {
        skill: Skill,
    }
    #[derive(Deserialize)]
    struct Skill {
        id: Option<String>,
    }
    let Ok(line) = serde_json::from_slice::<Line<'_>>(text) else {
        return (None, None);
    };
    let first = matches!(line.event, "call_started" | "call_refused");
    let begins = line.data.filter(|_| first);
    let begun = begins.and_then(|data| serde_json::from_str::<Begun>(data.get()).ok());
    (line.run_id, begun.and_then(|b| b.skill.id))
}

/// One line, and no longer than that.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut chars = text.char_indices();
    match chars.nth(most) {
        Some((end, _)) => format!("{}…", one_line(&text[..end])),
        None => one_line(text),
    }
}

fn word(text: &Text) -> String {
    short(text.as_str(), WORD)
}

pub(super) fn status_style(status: Option<&str>) -> Style {
    match status {
        Some("ok") => GOOD,
        Some("denied" | "limit_exceeded" | "unfinished") | None => WARNING,
        Some(_) => ERROR,
    }
}

pub(super) fn millis(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{:.1} min", ms as f64 / 6e4),
    }
}

pub(super) fn bytes(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 || unit == "GiB" {
            return if unit == "B" {
                format!("{n} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{n} B")
}

/// A number of things.
pub(super) fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// What happened, and how it is shown.
pub(super) fn event(event: &Event) -> (Style, String) {
    match event {
        Event::CallStarted(call) => {
            let text = format!(
                "started {} at level {}, recorded at {}{}",
                skill(&call.skill),
                call.isolation,
                call.level,
                on_behalf(call.actor.as_ref())
            );
            (HINT, text)
        }
        Event::CallEnded(call) => ended(call),
        Event::CallRefused(call) => refused(call),
        Event::LimitReached { reason } => (WARNING, format!("reached a limit ({reason})")),
        Event::Denied(denied) => (WARNING, denial(denied)),
        Event::ProcessStarted {
            program,
            argv,
            argc,
        } => {
            let text = format!("executes {} [{}]", word(program), command(argv, *argc));
            (PLAIN, text)
        }
        Event::ProcessEnded { code } => (FAINT, format!("exits with {code}")),
        Event::FileOpened(file) => {
            let (style, how) = match file.access {
                Access::Read => (PLAIN, "reading"),
                Access::Write => (HINT, "writing"),
                Access::ReadWrite => (HINT, "reading and writing"),
            };
            (style, format!("opened for {how} {}", word(&file.path)))
        }
        Event::FileChanged { change, path, to } => {
            let to = to.as_ref().map(word);
            (HINT, changed(*change, &word(path), to.as_deref()))
        }
        Event::Connect { address } => (PLAIN, format!("connect {}", word(address))),
        Event::NameAsked(asked) => {
            let name = short(&asked.host, WORD);
            match asked.denied {
                Some(reason) => (WARNING, format!("denied name {name} ({reason})")),
                None => (PLAIN, format!("asked for the name {name}")),
            }
        }
        Event::ConnectionDecided(decided) => {
            let to = target(&decided.host, decided.port);
            let n = decided.connection;
            match (decided.denied, decided.rule) {
                (Some(reason), _) => (WARNING, format!("denied connection {n} to {to} ({reason})")),
                (None, Some(rule)) => (PLAIN, format!("connection {n} to {to}, by rule {rule}")),
                (None, None) => (PLAIN, format!("connection {n} to {to}")),
            }
        }
        Event::HttpRequest(request) => {
            let port = match request.port {
                80 | 443 => None,
                port => Some(port),
            };
            let what = format!(
                "{} {}{}",
                word(&request.method),
                target(&request.host, port),
                word(&request.path)
            );
            match request.denied {
                Some(reason) => (WARNING, format!("denied request {what} ({reason})")),
                None => (PLAIN, what),
            }
        }
        Event::ConnectionEnded(egress) => connection(egress),
        Event::EgressDropped { count } => (
            WARNING,
            format!("{count} more names and connections, which are not recorded one by one"),
        ),
        Event::Syscall(call) => (FAINT, syscall(call)),
        Event::SegmentOpened { segment, .. } => {
            (FAINT, format!("segment {segment} of the log begins"))
        }
        Event::Recovered { torn_bytes } => (
            WARNING,
            format!(
                "a writer was stopped in the middle of a line; its {torn_bytes} bytes were cut off"
            ),
        ),
        Event::Pruned(anchor) => (
            WARNING,
            format!(
                "segments up to {} were removed, which end with line {}",
                anchor.segment, anchor.seq
            ),
        ),
    }
}

fn skill(skill: &SkillRef) -> String {
    let version = skill.version.as_deref();
    let version = version.map_or(String::new(), |v| format!("@{}", short(v, 40)));
    let id = short(skill.id.as_deref().unwrap_or("(unknown)"), WORD);
    format!("{id}{version}")
}

fn on_behalf(actor: Option<&Text>) -> String {
    actor.map_or(String::new(), |a| format!(", for {}", word(a)))
}

fn status_word(status: Status) -> String {
    let status = serde_json::to_value(status).unwrap_or_default();
    status.as_str().unwrap_or_default().to_owned()
}

/// `, 3 denials`, or nothing.
fn and_denials(denials: &[Denial]) -> String {
    match denials.iter().map(|d| d.count).sum() {
        0 => String::new(),
        n => format!(", {}", count(n, "denial", "denials")),
    }
}

fn refused(call: &CallRefused) -> (Style, String) {
    let status = status_word(call.status);
    let text = format!(
        "refused to start {}: {status} ({}){}{}",
        skill(&call.skill),
        call.reason,
        and_denials(&call.denials),
        on_behalf(call.actor.as_ref())
    );
    (status_style(Some(&status)), text)
}

fn ended(call: &CallEnded) -> (Style, String) {
    let status = status_word(call.status);
    let mut text = format!("ended: {status}");
    if let Some(reason) = call.reason {
        text.push_str(&format!(" ({reason})"));
    }
    text.push_str(&format!(" after {}", millis(call.usage.wall_ms)));
    text.push_str(&and_denials(&call.denials));
    (status_style(Some(&status)), text)
}

fn denial(denied: &Denied) -> String {
    let target = match &denied.syscall {
        Some(call) => syscall(call),
        None => word(&denied.target),
    };
    format!("denied {} {target} ({})", denied.kind, denied.reason)
}

fn changed(change: Change, path: &str, to: Option<&str>) -> String {
    let to = |word: &str| to.map_or(String::new(), |to| format!(" {word} {to}"));
    match change {
        Change::Truncate => format!("truncated {path}"),
        Change::Remove => format!("removed {path}"),
        Change::Rename => format!("renamed {path}{}", to("to")),
        Change::MakeFolder => format!("made folder {path}"),
        Change::Link => format!("made link {path}{}", to("to")),
        Change::Symlink => format!("made symbolic link {path}{}", to("to")),
        Change::MakeNode => format!("made device, pipe or socket {path}"),
        Change::Attributes => format!("changed attributes of {path}"),
    }
}

fn connection(egress: &EgressEvent) -> (Style, String) {
    let to = target(&egress.host, egress.port);
    let n = egress.connection.map_or(String::new(), |n| format!(" {n}"));
    if let Some(reason) = egress.denied {
        return (WARNING, format!("denied connection{n} to {to} ({reason})"));
    }
    let mut text = format!(
        "connection{n} to {to} ended: {} out, {} in, {}, {}",
        bytes(egress.bytes_out),
        bytes(egress.bytes_in),
        count(egress.requests, "request", "requests"),
        millis(egress.millis)
    );
    if let Some(address) = egress.address {
        text.push_str(&format!(", dialled {address}"));
    }
    if egress.open_at_end {
        text.push_str(", cut by the end of the call");
    }
    (PLAIN, text)
}

pub(super) fn syscall(call: &Syscall) -> String {
    let args: Vec<String> = call.args.iter().map(word).collect();
    let errno = call
        .errno
        .map_or(String::new(), |e| format!(" = error {e}"));
    format!("{}({}){errno}", short(&call.name, 40), args.join(", "))
}

fn target(host: &str, port: Option<u16>) -> String {
    let host = short(host, WORD);
    match port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// Arguments as a shell would take them.
pub(super) fn command(argv: &[Text], argc: u64) -> String {
    let mut words: Vec<String> = argv.iter().take(ARGS).map(quoted).collect();
    let more = argc.saturating_sub(words.len() as u64);
    if more > 0 {
        words.push(format!("… {more} more"));
    }
    words.join(" ")
}

fn quoted(text: &Text) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+".contains(c);
    let shown = word(text);
    if !text.as_str().is_empty() && text.as_str().chars().all(plain) {
        shown
    } else {
        format!("'{}'", shown.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5120.0 GiB");
        assert_eq!(millis(412), "412 ms");
        assert_eq!(millis(90_000), "90.0 s");
    }

    #[test]
    fn a_line_that_is_no_record_is_still_one_line() {
        let shown = line(b"\xff{\n\x1b[2J}", None);
        assert!(
            !shown.contains('\n') && shown.contains("not understood"),
            "{shown}"
        );
        assert!(!shown.contains("\u{1b}[2J"), "{shown}");
    }
}
