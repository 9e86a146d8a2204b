//! Everything that is printed. Text that came from a skill is escaped before it meets a terminal.

use anstyle::{AnsiColor, Effects, Style};
use indicatif::{ProgressBar, ProgressStyle};
use skillcell_core::{Denial, ErrorBody, Status};
use skillcell_supervisor::Interaction;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const FAINT: Style = Style::new().effects(Effects::DIMMED);
pub(crate) const PLAIN: Style = Style::new();

/// Control characters, made visible; newlines and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// The same on one line: what breaks lines is made visible too.
pub(crate) fn one_line(text: &str) -> String {
    escaped(text, |_| false)
}

fn escaped(text: &str, keep: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if keep(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if is_tricky(c) => out.extend(c.escape_unicode()),
            _ => out.push(c),
        }
    }
    out
}

/// Controls of a terminal, and what is invisible or changes the direction of what is shown: with
/// these a text can look like another one.
fn is_tricky(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// JSON that means the same, without anything that drives a terminal. Such characters stand in
/// strings only, where they can be written as escapes.
pub(crate) fn tame_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_tricky(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// A line on stdout. False when nobody could read it, which only matters for a result.
pub(crate) fn line(text: &str) -> bool {
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}

/// Text with styles on stdout. Whoever closed the other end (`| head`) has seen enough.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}")
        .and_then(|()| out.flush())
        .unwrap_or(());
}

/// A value as JSON on stdout, indented: these are read by people too.
pub(crate) fn json_value<T: serde::Serialize>(value: &T) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print_raw(&format!("{}\n", tame_json(&text))),
        Err(error) => warning(&format!("the answer can't be written as JSON: {error}")),
    }
}

/// One styled line on stdout. False when nobody reads any more.
pub(crate) fn styled_line(text: &str) -> bool {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Text on stdout as it is.
pub(crate) fn print_raw(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .unwrap_or(());
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Human,
    Json,
}

impl Format {
    pub(crate) fn of(json: bool) -> Self {
        if json { Format::Json } else { Format::Human }
    }
}

/// A command that failed as a whole: its error, and the exit code for it.
pub(crate) fn failure(status: Status, body: &ErrorBody, format: Format) -> ExitCode {
    match format {
        Format::Human => error(body),
        Format::Json => json_value(&serde_json::json!({"status": status, "error": body})),
    }
    ExitCode::from(status.exit_code())
}

/// The envelope, and the exit code that its status stands for.
pub(crate) fn json(outcome: &skillcell_supervisor::Outcome) -> ExitCode {
    let code = ExitCode::from(outcome.status.exit_code());
    match serde_json::to_string(outcome) {
        Ok(text) if line(&text) => code,
        _ => ExitCode::from(Status::InternalError.exit_code()),
    }
}

fn stderr(label: &str, style: Style, text: &str) {
    // A closed stderr is no reason to fail a call.
    writeln!(
        anstream::stderr().lock(),
        "{style}{label}{style:#}: {}",
        printable(text)
    )
    .unwrap_or(());
}

pub(crate) fn warning(text: &str) {
    stderr("warning", WARNING, text);
}

pub(crate) fn error(body: &ErrorBody) {
    error_line(&body.message, body.hint.as_deref());
}

pub(crate) fn error_line(message: &str, hint: Option<&str>) {
    stderr("error", ERROR, message);
    if let Some(hint) = hint {
        stderr("hint", HINT, hint);
    }
}

pub(crate) fn denial(denial: &Denial) {
    let times = if denial.count > 1 {
        format!(" ({} times)", denial.count)
    } else {
        String::new()
    };
    stderr(
        "denied",
        WARNING,
        &format!(
            "{} {}{times}: {}; {}",
            denial.kind,
            denial.target.replace('\n', "\\n"),
            denial.reason,
            denial.hint
        ),
    );
}

pub(crate) fn captured(out: &str, err: &str) {
    for (name, text) in [("stdout", out), ("stderr", err)] {
        for line in text.lines() {
            stderr(&format!("skill {name}"), HINT, line);
        }
    }
}

/// A mistake in the command line: exit code 2, or help and version on stdout with 0.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        write!(anstream::stderr().lock(), "{}", text.ansi()).unwrap_or(());
        ExitCode::from(Status::InvalidInput.exit_code())
    } else {
        write!(anstream::stdout().lock(), "{}", text.ansi()).unwrap_or(());
        ExitCode::SUCCESS
    }
}

/// Progress for a person at a terminal, and nothing elsewhere.
pub(crate) struct Terminal {
    bar: RefCell<Option<ProgressBar>>,
    shows_progress: bool,
}

impl Terminal {
    pub(crate) fn new(json: bool) -> Self {
        Terminal {
            bar: RefCell::new(None),
            shows_progress: std::io::stderr().is_terminal() && !json,
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Interaction for Terminal {
    fn stage(&self, text: &str) {
        if !self.shows_progress {
            return;
        }
        let mut bar = self.bar.borrow_mut();
        let bar = bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            // No ticker thread: the supervisor must stay single-threaded while it makes cells.
            ProgressBar::new_spinner().with_style(style)
        });
        bar.set_message(printable(text));
        bar.tick();
    }

    fn line(&self, text: &str) {
        if let Some(bar) = self.bar.borrow().as_ref() {
            bar.set_message(printable(text));
            bar.tick();
        }
    }

    fn warn(&self, text: &str) {
        self.finish();
        warning(text);
    }
}

/// How far something long has got, for a person at a terminal, once it takes long.
pub(crate) struct Meter {
    label: &'static str,
    begun: Instant,
    bar: Option<ProgressBar>,
    shows: bool,
}

impl Meter {
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn new(label: &'static str, format: Format) -> Self {
        Meter {
            label,
            begun: Instant::now(),
            bar: None,
            shows: std::io::stderr().is_terminal() && format == Format::Human,
        }
    }

    pub(crate) fn set(&mut self, done: u64, total: u64) {
        if !self.shows || self.begun.elapsed() < Self::PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let template = "{msg} {wide_bar} {bytes}/{total_bytes} {eta}";
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(total)
                .with_style(style)
                .with_message(self.label)
        });
        bar.set_length(total);
        bar.set_position(done);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\n\t\r\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{200b}\u{2028}\u{feff}\u{e0041}é\\n";

    #[test]
    fn nothing_that_drives_a_terminal_or_hides_is_printed() {
        assert_eq!(
            one_line(HOSTILE),
            "a\\n\\t\\r\\u{1b}[2J\\u{7f}\\u{9b}31m\\u{202e}\\u{200b}\\u{2028}\\u{feff}\\u{e0041}é\\n"
        );
        assert!(printable(HOSTILE).starts_with("a\n\t\\r\\u{1b}"));
    }

    #[test]
    fn tame_json_means_the_same() {
        let json = serde_json::to_string(&[HOSTILE]).unwrap();
        let tame = tame_json(&json);
        assert!(!tame.chars().any(is_tricky), "{tame}");
        let back: Vec<String> = serde_json::from_str(&tame).unwrap();
        assert_eq!(back, [HOSTILE]);
    }
}
