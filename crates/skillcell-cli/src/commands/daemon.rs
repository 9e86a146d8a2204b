//! `run --daemon`: the same call, made by a daemon. Nothing is planned here, and nothing is run here
//! when no daemon answers.

use rustix::fd::AsFd;
use skillcell_core::{Reason, Status};
use skillcell_server::api::{ApiCode, ApiError, Call};
use skillcell_server::client::{Client, ClientError, Named};
use skillcell_server::{default_socket, failed};
use skillcell_supervisor::{Interaction, Outcome, ParamsSource, Request};
use std::io::Read;
use std::path::PathBuf;

/// As much as a call's params may have, and one byte more: the daemon says that it is too much.
const MAX_PARAMS: u64 = (64 << 20) + 1;

pub(crate) fn run(
    socket: Option<PathBuf>,
    mut request: Request,
    show_output: bool,
    ui: &dyn Interaction,
) -> Outcome {
    if matches!(request.params, ParamsSource::Stdin) {
        let mut bytes = Vec::new();
        if let Err(error) = std::io::stdin()
            .lock()
            .take(MAX_PARAMS)
            .read_to_end(&mut bytes)
        {
            let message = format!("standard input: can't be read: {error}");
            return failed(Status::InvalidInput, Reason::InvalidParams, message);
        }
        request.params = ParamsSource::StdinWas(bytes);
    }
    let call = Call {
        request,
        show_output,
        ..Call::default()
    };
    // As for a call that is made here: an interrupt ends the call, and its envelope is printed.
    let signals = match skillcell_linux::termination_signals() {
        Ok(signals) => signals,
        Err(error) => {
            let message = format!("signals can't be waited for: {error}");
            return failed(Status::InternalError, Reason::Internal, message);
        }
    };
    let (path, named) = match socket {
        Some(path) => (path, Named::ByCaller),
        None => (default_socket(), Named::ByRule),
    };
    Client::connect(&path, named)
        .and_then(|client| client.run(&call, ui, signals.as_fd()))
        .unwrap_or_else(|error| outcome(&error))
}

/// The envelope of a call that no daemon made. `refused`: nothing was run; `internal_error`: nobody
/// knows.
fn outcome(error: &ClientError) -> Outcome {
    let (status, code, hint) = match error {
        ClientError::None { .. } => (
            Status::Refused,
            Reason::DaemonUnavailable,
            Some("start one with `skillcell serve`, or leave --daemon out".to_owned()),
        ),
        ClientError::Foreign { .. } => (
            Status::Refused,
            Reason::CallerNotAllowed,
            Some("use a daemon of your own: `skillcell serve`".to_owned()),
        ),
        ClientError::Answer(answer) => of_answer(answer),
        ClientError::Unfit(_) | ClientError::Folder(_) => {
            (Status::InvalidInput, Reason::InvalidUsage, None)
        }
        ClientError::Lost(_) | ClientError::Garbled(_) => (
            Status::InternalError,
            Reason::Internal,
            Some(
                "whether the call was made is in the audit log: `skillcell audit list`".to_owned(),
            ),
        ),
    };
    let mut outcome = failed(status, code, error.to_string());
    if let Some(body) = &mut outcome.error {
        body.hint = hint;
    }
    outcome
}

fn of_answer(answer: &ApiError) -> (Status, Reason, Option<String>) {
    let (status, code) = match answer.code {
        ApiCode::Busy | ApiCode::Draining => (Status::Refused, Reason::Busy),
        ApiCode::Forbidden | ApiCode::Unauthorized => (Status::Denied, Reason::CallerNotAllowed),
        ApiCode::NotFound => (Status::InvalidInput, Reason::SkillNotFound),
        ApiCode::Internal => (Status::InternalError, Reason::Internal),
        _ => (Status::InvalidInput, Reason::InvalidUsage),
    };
    (status, code, answer.hint.clone())
}
