//! One answer for a daemon: a call, an explanation, or the list of skills. The daemon has given this
//! process the caller's variables and folder.

use crate::commands::explain::as_json;
use crate::output;
use serde_json::{Value, json};
use skillcell_bundle::{Bundle, SearchPath};
use skillcell_core::Status;
use skillcell_server::api::{Call, Event, OutputStream, RunRequest, SkillEntry, Skills};
use skillcell_server::line::{Decoder, line};
use skillcell_server::{Job, Order, Outbox, failed};
use skillcell_supervisor::{CallError, Interaction, Outcome, Printed, Python};
use std::cell::RefCell;
use std::io::Write;
use std::process::ExitCode;

pub(super) fn work() -> ExitCode {
    let job = match Order::take() {
        Ok(job) => job,
        Err(error) => {
            output::error_line(&error.to_string(), None);
            return ExitCode::from(Status::InternalError.exit_code());
        }
    };
    let teller = Teller::default();
    let done = match job {
        Job::Run(request) => teller.end(&run(*request, &teller)),
        Job::Explain(request) => teller.end(&explain(*request)),
        Job::Skills => teller.end(&skills()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The daemon is gone.
        Err(_) => ExitCode::from(Status::InternalError.exit_code()),
    }
}

fn call(request: RunRequest) -> Result<Call, String> {
    request.into_call().map_err(|error| error.to_string())
}

fn run(request: RunRequest, ui: &dyn Interaction) -> Outcome {
    match call(request) {
        Ok(call) => skillcell_supervisor::run(&call.request, skillcell_linux::probe::quick(), ui),
        Err(message) => failed(
            Status::InvalidInput,
            skillcell_core::Reason::InvalidUsage,
            message,
        ),
    }
}

fn explain(request: RunRequest) -> Value {
    let failed = |error: CallError| json!({"status": error.status(), "error": error.body()});
    let call = match call(request) {
        Ok(call) => call,
        Err(message) => {
            return json!({"status": Status::InvalidInput, "error": {"message": message}});
        }
    };
    let host = skillcell_linux::probe::quick();
    let found = match skillcell_supervisor::explain(&call.request, &host) {
        Ok(found) => found,
        Err(error) => return failed(error),
    };
    match found.bundle.describe() {
        Ok(description) => as_json(&found, description),
        Err(error) => failed(error.into()),
    }
}

fn skills() -> Skills {
    let packages = Python::find(None, None).map(|python| python.site_packages());
    let search = SearchPath::from_env(&packages.unwrap_or_default());
    let skills = skillcell_bundle::list(&search).into_iter();
    let skills = skills.map(|(id, folder)| {
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        let read = Bundle::open(&folder);
        let manifest = read.as_ref().ok().map(|bundle| &bundle.manifest);
        SkillEntry {
            version: manifest.and_then(|m| m.version.clone()),
            description: manifest.and_then(|m| m.description.clone()),
            error: read.as_ref().err().map(ToString::to_string),
            folder: folder.to_string_lossy().into_owned(),
            id,
        }
    });
    Skills {
        skills: skills.collect(),
    }
}

/// Tells the daemon of events, as far as it listens: a supervisor that waited for it would not see
/// the deadline of its call.
#[derive(Default)]
struct Teller {
    told: RefCell<Told>,
}

#[derive(Default)]
struct Told {
    outbox: Outbox,
    stdout: Decoder,
    stderr: Decoder,
    lost: bool,
}

impl Teller {
    fn tell(&self, event: &Event<()>) {
        let told = &mut *self.told.borrow_mut();
        if told.lost {
            return;
        }
        told.outbox.push(&line(event));
        let stdout = std::io::stdout();
        let write = |bytes: &[u8]| Ok(rustix::io::write(&stdout, bytes)?);
        told.lost =
            rustix::io::ioctl_fionbio(&stdout, true).is_err() || told.outbox.flush(write).is_err();
    }

    fn end<E: serde::Serialize>(&self, envelope: &E) -> std::io::Result<()> {
        let (rest, dropped) = std::mem::take(&mut self.told.borrow_mut().outbox).into_rest();
        rustix::io::ioctl_fionbio(std::io::stdout(), false)?;
        let mut out = std::io::stdout().lock();
        out.write_all(&rest)?;
        out.write_all(&line(&Event::End { envelope, dropped }))?;
        out.flush()
    }
}

impl Interaction for Teller {
    fn stage(&self, text: &str) {
        let text = text.to_owned();
        self.tell(&Event::Stage { text });
    }

    fn line(&self, text: &str) {
        let text = text.to_owned();
        self.tell(&Event::Line { text });
    }

    fn warn(&self, text: &str) {
        let text = text.to_owned();
        self.tell(&Event::Warn { text });
    }

    fn output(&self, from: Printed, bytes: &[u8]) {
        let (stream, text) = {
            let told = &mut *self.told.borrow_mut();
            match from {
                Printed::Stdout => (OutputStream::Stdout, told.stdout.text(bytes)),
                Printed::Stderr => (OutputStream::Stderr, told.stderr.text(bytes)),
            }
        };
        if !text.is_empty() {
            self.tell(&Event::Output { stream, text });
        }
    }
}
