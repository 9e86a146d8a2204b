//! What the events of a call have in common: said once in the log, wanted with each of them elsewhere.

use crate::{Event, HttpRequest, Record};
use skillcell_core::{AuditLevel, Denial, DenialKind, Isolation, Reason, RunId, SkillRef};
use std::collections::{BTreeMap, BTreeSet};

/// Calls whose end was not seen yet are forgotten beyond this number, oldest first.
const MAX_OPEN: usize = 4096;
/// Things of one call that are remembered as told already.
const MAX_TOLD: usize = 4096;

/// A call, as far as the log has told of it.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub run_id: Option<RunId>,
    pub skill: SkillRef,
    pub actor: Option<String>,
    pub request_id: Option<String>,
    pub isolation: Option<Isolation>,
    pub level: Option<AuditLevel>,
    pub started_us: Option<u64>,
    /// Connections whose denial was told.
    connections: BTreeSet<u64>,
    told: BTreeSet<(DenialKind, Reason, String)>,
}

/// Something that the cell did not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub kind: DenialKind,
    pub target: String,
    pub reason: Reason,
    pub count: u64,
    /// What would allow it.
    pub hint: Option<String>,
}

impl Refused {
    fn once(kind: DenialKind, target: String, reason: Reason) -> Refused {
        Refused {
            kind,
            target,
            reason,
            count: 1,
            hint: None,
        }
    }
}

impl From<&Denial> for Refused {
    fn from(denial: &Denial) -> Refused {
        Refused {
            kind: denial.kind,
            target: denial.target.clone(),
            reason: denial.reason,
            count: denial.count,
            hint: Some(denial.hint.clone()),
        }
    }
}

impl Call {
    /// Takes in what an event says of its call.
    fn learn(&mut self, record: &Record) {
        self.run_id.clone_from(&record.run_id);
        let (skill, actor, request_id) = match &record.event {
            Event::CallStarted(started) => {
                self.isolation = Some(started.isolation);
                self.level = Some(started.level);
                (&started.skill, &started.actor, &started.request_id)
            }
            Event::CallRefused(call) => (&call.skill, &call.actor, &call.request_id),
            _ => return,
        };
        self.skill = skill.clone();
        self.actor = actor.as_ref().map(ToString::to_string);
        self.request_id = request_id.as_ref().map(ToString::to_string);
        self.started_us = Some(record.unix_us);
    }

    /// What an event says was not allowed. A connection is told once, with its decision; the end of
    /// a call repeats everything, so from there only what is new.
    fn refused(&mut self, record: &Record) -> Vec<Refused> {
        use DenialKind::Network;
        let found = match &record.event {
            Event::Denied(denied) => {
                Refused::once(denied.kind, denied.target.to_string(), denied.reason)
            }
            Event::NameAsked(name) => match name.denied {
                Some(reason) => Refused::once(Network, name.host.clone(), reason),
                None => return Vec::new(),
            },
            Event::ConnectionDecided(decided) => match decided.denied {
                Some(reason) => {
                    self.remember(decided.connection);
                    Refused::once(Network, target(&decided.host, decided.port), reason)
                }
                None => return Vec::new(),
            },
            Event::HttpRequest(request) => match request.denied {
                Some(reason) => {
                    if let Some(connection) = request.connection {
                        self.remember(connection);
                    }
                    self.tell(Network, reason, &target(&request.host, Some(request.port)));
                    Refused::once(Network, request_line(request), reason)
                }
                None => return Vec::new(),
            },
            Event::ConnectionEnded(ended) => match ended.denied {
                Some(reason)
                    if !ended
                        .connection
                        .is_some_and(|c| self.connections.contains(&c)) =>
                {
                    Refused::once(Network, target(&ended.host, ended.port), reason)
                }
                _ => return Vec::new(),
            },
            Event::CallEnded(ended) => return self.untold(&ended.denials),
            Event::CallRefused(call) => return self.untold(&call.denials),
            _ => return Vec::new(),
        };
        self.tell(found.kind, found.reason, &found.target);
        vec![found]
    }

    /// Those that no event has told of before.
    fn untold(&self, denials: &[Denial]) -> Vec<Refused> {
        let told = |d: &Denial| self.told.contains(&(d.kind, d.reason, d.target.clone()));
        let new = denials.iter().filter(|d| !told(d));
        new.map(Refused::from).collect()
    }

    fn tell(&mut self, kind: DenialKind, reason: Reason, target: &str) {
        if self.told.len() < MAX_TOLD {
            self.told.insert((kind, reason, target.to_owned()));
        }
    }

    fn remember(&mut self, connection: u64) {
        if self.connections.len() < MAX_TOLD {
            self.connections.insert(connection);
        }
    }
}

/// `host:port` as denials have it.
pub(crate) fn target(host: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(crate) fn request_line(request: &HttpRequest) -> String {
    format!(
        "{} {}{}",
        request.method,
        target(&request.host, Some(request.port)),
        request.path
    )
}

/// The calls that have begun and not ended, as far as the log was read.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: BTreeMap<RunId, Call>,
    ended: Option<RunId>,
    none: Call,
}

impl Calls {
    /// The call of an event, and what the event says was not allowed.
    pub(crate) fn take(&mut self, record: &Record) -> (&Call, Vec<Refused>) {
        if let Some(ended) = self.ended.take() {
            self.open.remove(&ended);
        }
        let Some(run) = &record.run_id else {
            return (&self.none, Vec::new());
        };
        if !self.open.contains_key(run) && self.open.len() >= MAX_OPEN {
            // Ids sort by time.
            self.open.pop_first();
        }
        if record.event.ends_call() {
            self.ended = Some(run.clone());
        }
        let call = self.open.entry(run.clone()).or_default();
        call.learn(record);
        let refused = call.refused(record);
        (call, refused)
    }

    /// The call that a line of unknown content belongs to.
    pub(crate) fn of(&self, run: Option<&RunId>) -> &Call {
        run.and_then(|run| self.open.get(run)).unwrap_or(&self.none)
    }
}
