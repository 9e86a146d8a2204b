//! A call whose events are told while it runs, and whose envelope comes last.

use crate::api::{ApiCode, ApiError, Call, Event, OutputStream};
use crate::cancel::Cancel;
use crate::http::{Accept, Connection, chunk, chunk_end, stream_head};
use crate::line::{Decoder, line};
use crate::outbox::Outbox;
use crate::routes::make;
use crate::serve::Daemon;
use serde_json::value::RawValue;
use skillcell_supervisor::{Interaction, Printed};
use std::cell::RefCell;
use std::io;

pub(crate) fn run(
    daemon: &Daemon,
    connection: &mut Connection,
    call: &Call,
    cancel: &Cancel,
    accept: Accept,
    keep_alive: bool,
) -> io::Result<()> {
    let kind = match accept {
        Accept::Events => "text/event-stream",
        _ => "application/x-ndjson",
    };
    connection.send(&stream_head(kind, keep_alive))?;
    let teller = Teller {
        accept,
        told: RefCell::new(Told {
            connection,
            outbox: Outbox::default(),
            stdout: Decoder::default(),
            stderr: Decoder::default(),
            lost: false,
        }),
    };
    let done = make(daemon, call, &teller, cancel).and_then(|outcome| {
        serde_json::value::to_raw_value(&outcome).map_err(|error| {
            let message = format!("the envelope can't be written: {error}");
            ApiError::new(ApiCode::Internal, message)
        })
    });
    let told = teller.told.into_inner();
    let (mut rest, dropped) = told.outbox.into_rest();
    let last: Event<Box<RawValue>> = match done {
        Ok(envelope) => Event::End { envelope, dropped },
        Err(error) => Event::Error { error },
    };
    rest.extend(chunk(&written(accept, &last)));
    rest.extend_from_slice(chunk_end());
    told.connection.send(&rest)
}

/// As this kind of stream writes an event.
fn written(accept: Accept, event: &Event<Box<RawValue>>) -> Vec<u8> {
    let line = line(event);
    if accept != Accept::Events {
        return line;
    }
    // The line has no other line ends in it: JSON escapes them.
    let mut out = format!("event: {}\ndata: ", name(event)).into_bytes();
    out.extend_from_slice(&line);
    out.push(b'\n');
    out
}

fn name<E>(event: &Event<E>) -> &'static str {
    match event {
        Event::Stage { .. } => "stage",
        Event::Line { .. } => "line",
        Event::Warn { .. } => "warn",
        Event::Output { .. } => "output",
        Event::End { .. } => "end",
        Event::Error { .. } => "error",
    }
}

struct Teller<'a> {
    accept: Accept,
    told: RefCell<Told<'a>>,
}

struct Told<'a> {
    connection: &'a mut Connection,
    outbox: Outbox,
    stdout: Decoder,
    stderr: Decoder,
    /// The connection has failed; the call will be cancelled for it.
    lost: bool,
}

impl Teller<'_> {
    fn tell(&self, event: &Event<Box<RawValue>>) {
        let told = &mut *self.told.borrow_mut();
        if told.lost {
            return;
        }
        told.outbox.push(&chunk(&written(self.accept, event)));
        let stream = &mut told.connection.stream;
        told.lost = told.outbox.flush(|bytes| stream.write(bytes)).is_err();
    }
}

impl Interaction for Teller<'_> {
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
