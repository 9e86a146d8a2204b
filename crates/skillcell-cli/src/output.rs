//! Everything that is printed. Text that came from a skill is escaped before it meets a terminal.

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use skillcell_core::{Denial, ErrorBody, Status};
use skillcell_supervisor::Interaction;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Control characters, made visible; newlines and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let keep = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    // Invisible direction marks can make a terminal show something else than what is there.
    let tricky = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    text.chars()
        .flat_map(|c| {
            if keep(c) && !tricky(c) {
                vec![c]
            } else {
                c.escape_unicode().collect()
            }
        })
        .collect()
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
        Ok(text) => print_raw(&format!("{text}\n")),
        Err(error) => warning(&format!("the answer can't be written as JSON: {error}")),
    }
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
