//! What each path answers.

use crate::api::{ApiCode, ApiError, Call, Health, RunRequest};
use crate::caller::Caller;
use crate::cancel::Cancel;
use crate::cold;
use crate::http::{Accept, Connection, Head, Reply};
use crate::serve::Daemon;
use crate::streamed;
use skillcell_core::Status;
use skillcell_supervisor::{Outcome, Quiet};
use std::io;
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Run,
    Explain,
    Skills,
    Health,
    Metrics,
    OpenApi,
}

impl Route {
    pub(crate) const ALL: [Route; 6] = [
        Route::Run,
        Route::Explain,
        Route::Skills,
        Route::Health,
        Route::Metrics,
        Route::OpenApi,
    ];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Route::Run => "/v1/run",
            Route::Explain => "/v1/explain",
            Route::Skills => "/v1/skills",
            Route::Health => "/v1/health",
            Route::Metrics => "/metrics",
            Route::OpenApi => "/openapi.json",
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Route::Run | Route::Explain => "POST",
            _ => "GET",
        }
    }

    fn find(path: &str) -> Option<Route> {
        Route::ALL.into_iter().find(|route| route.path() == path)
    }
}

/// Whether the connection can be used on.
pub(crate) enum After {
    Next,
    Close,
}

/// Answers one request.
pub(crate) fn answer(
    daemon: &Daemon,
    connection: &mut Connection,
    caller: Result<&Caller, ApiError>,
    cancel: &Cancel,
    head: &Head,
) -> io::Result<After> {
    let found = Route::find(&head.path);
    let name = found.map_or("other", Route::path);
    // What can be said from the head alone is said before the body is read.
    let early = match (caller, found) {
        (Err(error), _) => Err(Reply::error(&error)),
        (Ok(_), None) => Err(Reply::error(&unknown(&head.path))),
        (Ok(_), Some(route)) if head.method != route.method() => {
            Err(Reply::not_allowed(route.method()))
        }
        (Ok(_), Some(route)) if head.query && route != Route::Metrics => {
            let error = ApiError::new(ApiCode::BadRequest, "there is nothing to ask in a query");
            Err(Reply::error(&error))
        }
        (Ok(_), Some(route)) if route.method() == "POST" && !head.json => {
            let error = ApiError::new(ApiCode::UnsupportedMediaType, "the body must be JSON")
                .hint("send Content-Type: application/json");
            Err(Reply::error(&error))
        }
        (Ok(caller), Some(route)) => Ok((caller, route)),
    };
    let (caller, route) = match early {
        Ok(both) => both,
        Err(reply) => {
            // The answer to a HEAD is a head, and what follows it would be read as the next one.
            let reply = if head.method == "HEAD" {
                reply.without_body()
            } else {
                reply
            };
            let goes_on = connection.skip(head)? && head.keep_alive && head.method != "HEAD";
            return finish(daemon, connection, name, &reply, goes_on);
        }
    };
    let body = match connection.body(head, daemon.max_body)? {
        Ok(body) => body,
        Err(error) => return finish(daemon, connection, name, &Reply::error(&error), false),
    };
    let goes_on = head.keep_alive && !daemon.drain.is_now();
    let reply = match route {
        Route::Run => {
            let call = match call(daemon, caller, &body) {
                Ok(call) => call,
                Err(error) => {
                    return finish(daemon, connection, name, &Reply::error(&error), goes_on);
                }
            };
            drop(body);
            if head.accept != Accept::Json {
                daemon.metrics.request(name, 200);
                streamed::run(daemon, connection, &call, cancel, head.accept, goes_on)?;
                return Ok(if goes_on { After::Next } else { After::Close });
            }
            run(daemon, &call, cancel)
        }
        Route::Explain => match call(daemon, caller, &body)
            .and_then(|call| daemon.workers.explain(&call, cancel))
        {
            Ok(raw) => Reply::json(String::from(Box::<str>::from(raw)).into_bytes()),
            Err(error) => Reply::error(&error),
        },
        Route::Skills => match daemon.workers.skills(cancel) {
            Ok(raw) => Reply::json(String::from(Box::<str>::from(raw)).into_bytes()),
            Err(error) => Reply::error(&error),
        },
        Route::Health => health(daemon),
        Route::Metrics => Reply::text(
            "text/plain; version=0.0.4; charset=utf-8",
            daemon
                .metrics
                .text(&daemon.engine.metrics(), daemon.drain.is_now()),
        ),
        Route::OpenApi => Reply::json(crate::openapi::document()),
    };
    finish(daemon, connection, name, &reply, goes_on)
}

fn finish(
    daemon: &Daemon,
    connection: &mut Connection,
    name: &'static str,
    reply: &Reply,
    goes_on: bool,
) -> io::Result<After> {
    daemon.metrics.request(name, reply.status);
    connection.send(&reply.bytes(goes_on))?;
    Ok(if goes_on { After::Next } else { After::Close })
}

fn unknown(path: &str) -> ApiError {
    let path: String = path.chars().take(200).collect();
    let paths: Vec<_> = Route::ALL.map(Route::path).to_vec();
    ApiError::new(ApiCode::NotFound, format!("there is nothing at {path}"))
        .hint(format!("there are {}", paths.join(", ")))
}

/// The call in a body, as this caller may make it.
fn call(daemon: &Daemon, caller: &Caller, body: &[u8]) -> Result<Call, ApiError> {
    if daemon.drain.is_now() {
        return Err(ApiError::new(
            ApiCode::Draining,
            "the daemon is about to end; nothing was run",
        ));
    }
    let bad = |message: String| ApiError::new(ApiCode::BadRequest, message);
    let request: RunRequest =
        serde_json::from_slice(body).map_err(|e| bad(format!("the body is no request: {e}")))?;
    let call = request.into_call().map_err(|e| bad(e.to_string()))?;
    if let Some(folder) = &call.folder
        && !folder.is_dir()
    {
        return Err(bad("`folder`: there is no such folder".to_owned()));
    }
    caller.admit(call)
}

fn run(daemon: &Daemon, call: &Call, cancel: &Cancel) -> Reply {
    match make(daemon, call, &Quiet, cancel) {
        Ok(outcome) => match serde_json::to_vec(&outcome) {
            Ok(body) => Reply::json(body),
            Err(error) => Reply::error(&ApiError::new(
                ApiCode::Internal,
                format!("the envelope can't be written: {error}"),
            )),
        },
        Err(error) => Reply::error(&error),
    }
}

/// Makes a call and counts it.
pub(crate) fn make(
    daemon: &Daemon,
    call: &Call,
    ui: &dyn skillcell_supervisor::Interaction,
    cancel: &Cancel,
) -> Result<Outcome, ApiError> {
    let begun = Instant::now();
    let running = daemon.metrics.call();
    let done = daemon.engine.run(call, ui, cancel);
    drop(running);
    match done {
        Ok(mut outcome) => {
            daemon.metrics.ended(outcome.status, begun.elapsed());
            // As on the command line: it is there on request, or when it explains a failure.
            if !call.show_output && outcome.status == Status::Ok {
                outcome.output = None;
            }
            Ok(outcome)
        }
        Err(busy) => {
            daemon.metrics.busy();
            Err(cold::busy(busy.retry_after))
        }
    }
}

fn health(daemon: &Daemon) -> Reply {
    let status = if daemon.drain.is_now() {
        "draining"
    } else {
        "ok"
    };
    let health = Health {
        status: status.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        calls_running: daemon.metrics.calls_running(),
    };
    Reply::json(serde_json::to_vec(&health).unwrap_or_default())
}
