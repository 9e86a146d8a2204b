//! What every connection of one call shares.

use super::dial::Dialler;
use super::hint;
use super::inspect::Inspector;
use super::journal::Entry;
use super::ledger::{self, Ledger};
use super::meter::{Meter, Spent};
use super::names::Names;
use super::secrets::Secrets;
use super::{AllowLine, Loopback};
use skillcell_core::{Adapter, EgressEvent, Host, Reason};
use skillcell_policy::{Ask, Decision, Egress, Intent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

pub(crate) struct Call {
    pub(crate) egress: Egress,
    pub(crate) names: Arc<Names>,
    pub(crate) meter: Meter,
    pub(crate) ledger: Ledger,
    pub(crate) dialler: Dialler,
    pub(crate) secrets: Secrets,
    /// Present exactly where a rule or a secret needs TLS to be taken apart.
    pub(crate) inspector: Option<Inspector>,
    /// Connections that are served at the same time.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) loopback: Loopback,
    pub(crate) proxies: Vec<(Host, u16)>,
    pub(crate) allow_line: AllowLine,
    /// How many connections have been asked for; numbers them in the record.
    pub(crate) connections: AtomicU64,
}

/// More connections at once than any client has, and fewer than there are descriptors.
pub(crate) const MAX_CONNECTIONS: usize = 400;

/// What a connection or a question is about.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) adapter: Adapter,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// A decision that was "no". It has been recorded; the client is still to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Reason,
    pub(crate) words: String,
}

impl Call {
    /// The one way in which anything here is allowed.
    pub(crate) fn decide(&self, host: &Host, ask: Ask<'_>) -> Decision {
        self.egress.decide(&Intent { host, ask })
    }

    /// Records a denial in the envelope's list, and gives what to tell the client.
    pub(crate) fn deny(&self, to: &Destination, reason: Reason, rule: Option<&str>) -> Refused {
        let hint = self.hint(reason, &to.host, Some(to.port), rule);
        self.refuse(to, reason, hint)
    }

    /// As `deny`, for a connection as a whole: its decision is the entry in the record.
    pub(crate) fn deny_whole(
        &self,
        to: &Destination,
        reason: Reason,
        rule: Option<&str>,
    ) -> Refused {
        let hint = self.hint(reason, &to.host, Some(to.port), rule);
        self.refuse_whole(to, reason, hint)
    }

    /// What would allow it, or why nothing does.
    pub(crate) fn hint(
        &self,
        reason: Reason,
        host: &Host,
        port: Option<u16>,
        rule: Option<&str>,
    ) -> String {
        hint::destination(self.allow_line, reason, host, port, rule)
    }

    /// Whether a destination is a proxy that the caller's own settings name.
    pub(crate) fn is_proxy(&self, to: &Destination) -> bool {
        self.proxies
            .iter()
            .any(|(host, port)| *host == to.host && *port == to.port)
    }

    pub(crate) fn deny_spent(&self, to: &Destination, spent: Spent) -> Refused {
        self.refuse(to, Reason::NetworkBudgetExceeded, hint::budget(spent))
    }

    /// Something on a connection that was let through before: it has an entry of its own.
    pub(crate) fn refuse(&self, to: &Destination, reason: Reason, hint: String) -> Refused {
        let target = ledger::target(&to.host, Some(to.port));
        // Denied either way.
        self.ledger
            .write(&Entry::Denied {
                target: &target,
                reason,
            })
            .unwrap_or_default();
        self.refuse_whole(to, reason, hint)
    }

    /// A connection as a whole, whose decision is the entry.
    fn refuse_whole(&self, to: &Destination, reason: Reason, hint: String) -> Refused {
        let target = ledger::target(&to.host, Some(to.port));
        let words = format!("skillcell: {target}: {reason}: {hint}");
        self.ledger.denial(&target, reason, hint);
        Refused { reason, words }
    }

    /// For what was asked for and has no destination, as the client wrote it: one event, one denial.
    pub(crate) fn deny_as_shown(
        &self,
        adapter: Adapter,
        shown: &str,
        reason: Reason,
        hint: String,
    ) {
        let mut event = EgressEvent::new(adapter, ledger::shown(shown), None);
        event.denied = Some(reason);
        self.ledger.denial(shown, reason, hint);
        let entry = match adapter {
            Adapter::Dns => Entry::Asked(&event),
            _ => Entry::Decided(&event),
        };
        // Denied either way.
        self.ledger.write(&entry).unwrap_or_default();
    }

    /// What can't be written down doesn't happen.
    pub(crate) fn unrecorded(&self, to: &Destination) -> Refused {
        let hint = "the record of this call can't be written".to_owned();
        self.refuse(to, Reason::AuditUnavailable, hint)
    }

    /// A new connection: policy first, then what the call may still spend.
    pub(crate) fn admit(&self, to: &Destination) -> Result<Admitted, Refused> {
        let (rule, inspect) = match self.decide(&to.host, Ask::Connect { port: to.port }) {
            Decision::Allow { rule, inspect } => (rule, inspect),
            Decision::Deny { reason, rule } => {
                return Err(self.deny_whole(to, reason, rule.as_deref()));
            }
        };
        if self.secrets.clean_name(&to.host.to_string()).is_err() {
            return Err(self.deny_whole(to, Reason::SecretLeak, None));
        }
        self.meter
            .connection()
            .and_then(|()| self.meter.host(&to.host))
            .map_err(|spent| {
                self.refuse_whole(to, Reason::NetworkBudgetExceeded, hint::budget(spent))
            })?;
        let mut event = EgressEvent::new(to.adapter, to.host.to_string(), Some(to.port));
        event.rule = Some(rule);
        event.connection = Some(self.connections.fetch_add(1, Ordering::Relaxed) + 1);
        if self.ledger.write(&Entry::Decided(&event)).is_err() {
            return Err(self.unrecorded(to));
        }
        Ok(Admitted {
            requests: inspect,
            secrets: !self.secrets.is_empty(),
            event,
        })
    }
}

/// A connection that policy allows so far.
pub(crate) struct Admitted {
    /// Rules say which requests: anything else than requests is denied.
    pub(crate) requests: bool,
    /// There are secrets to be put in, and to be looked for.
    pub(crate) secrets: bool,
    pub(crate) event: EgressEvent,
}
