//! What the broker writes down, in the words of the log.

use skillcell_audit::{ConnectionDecided, Denied, Event, HttpRequest, RecordFailed, Recorder};
use skillcell_core::{DenialKind, EgressEvent};
use skillcell_egress::{Entry, Journal, Unwritten};
use std::sync::Arc;

pub(crate) struct DoorJournal(pub(crate) Arc<Recorder>);

impl Journal for DoorJournal {
    fn write(&self, entry: &Entry<'_>) -> Result<(), Unwritten> {
        self.record(entry).map_err(|_| Unwritten)
    }
}

impl DoorJournal {
    fn record(&self, entry: &Entry<'_>) -> Result<(), RecordFailed> {
        let recorder = &self.0;
        match entry {
            Entry::Asked(event) => recorder.decide(None, &Event::NameAsked(self.clean(event))),
            Entry::Decided(event) => {
                let event = self.clean(event);
                let decided = ConnectionDecided {
                    connection: event.connection.unwrap_or(0),
                    adapter: event.adapter,
                    host: event.host,
                    port: event.port,
                    rule: event.rule,
                    denied: event.denied,
                };
                recorder.decide(None, &Event::ConnectionDecided(decided))
            }
            Entry::Request {
                connection,
                host,
                port,
                method,
                path,
                denied,
            } => {
                let request = HttpRequest {
                    connection: *connection,
                    host: recorder.redactor().clean(host),
                    port: *port,
                    method: recorder.text(method.as_bytes()),
                    path: recorder.text(path.as_bytes()),
                    denied: *denied,
                };
                recorder.decide(None, &Event::HttpRequest(request))
            }
            Entry::Denied { target, reason } => {
                let denied = Denied {
                    kind: DenialKind::Network,
                    target: recorder.text(recorder.redactor().clean(target).as_bytes()),
                    reason: *reason,
                    syscall: None,
                };
                recorder.decide(None, &Event::Denied(denied))
            }
            Entry::Ended(event) => recorder.note(None, &Event::ConnectionEnded(self.clean(event))),
        }
    }

    fn clean(&self, event: &EgressEvent) -> EgressEvent {
        EgressEvent {
            host: self.0.redactor().clean(&event.host),
            ..event.clone()
        }
    }
}
