//! The cell's name server. Policy is asked before anything is resolved; a denied name never leaves
//! the machine. An allowed one is resolved, so that the answer is honest, and answered with an
//! address that stands for it in this call alone.

use super::call::Call;
use super::dial::Unresolved;
use super::hint;
use super::journal::Entry;
use super::meter::Spent;
use crate::dns::{Answer, Query, TYPE_A, TYPE_AAAA, complaint};
use skillcell_core::{Adapter, DomainName, EgressEvent, Host, Reason};
use skillcell_policy::{Ask, Decision};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Questions of one call; more are refused without a look.
const MAX_QUESTIONS: u64 = 20_000;
/// Questions that are answered at the same time.
const AT_ONCE: usize = 64;
/// The longest label below a wildcard: names with room for data are a tunnel.
const MAX_WILDCARD_LABEL: usize = 48;
const TCP_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct NameServer {
    call: Arc<Call>,
    questions: AtomicU64,
    slots: Arc<Semaphore>,
}

impl NameServer {
    pub(crate) fn new(call: Arc<Call>) -> Arc<Self> {
        Arc::new(NameServer {
            call,
            questions: AtomicU64::new(0),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    pub(crate) async fn serve_udp(self: Arc<Self>, socket: UdpSocket) -> io::Result<()> {
        let socket = Arc::new(socket);
        let mut packet = [0u8; 1500];
        loop {
            let (length, from) = match socket.recv_from(&mut packet).await {
                Ok(received) => received,
                // An earlier answer that found nobody.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                return Ok(());
            };
            let (server, socket, question) = (
                Arc::clone(&self),
                Arc::clone(&socket),
                packet[..length].to_vec(),
            );
            tokio::spawn(async move {
                if let Some(answer) = server.answer(&question).await {
                    // A skill that doesn't take its answer has only itself to blame.
                    socket.send_to(&answer, from).await.unwrap_or(0);
                }
                drop(slot);
            });
        }
    }

    pub(crate) async fn serve_tcp(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        loop {
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                return Ok(());
            };
            let (client, _) = super::accept(&listener).await?;
            let server = Arc::clone(&self);
            tokio::spawn(async move {
                let _slot = slot;
                // However it ends, the client has its answers or a closed connection.
                timeout(TCP_PATIENCE, server.answer_tcp(client))
                    .await
                    .unwrap_or(Ok(()))
                    .unwrap_or(());
            });
        }
    }

    async fn answer_tcp(&self, mut client: TcpStream) -> io::Result<()> {
        loop {
            let length = client.read_u16().await?;
            let mut question = vec![0; usize::from(length)];
            client.read_exact(&mut question).await?;
            let Some(answer) = self.answer(&question).await else {
                return Ok(());
            };
            // In one piece: there are clients that take one segment for the whole answer (RFC 7766, 8).
            let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
            framed.extend_from_slice(&answer);
            client.write_all(&framed).await?;
        }
    }

    /// `None` for what nobody waits for an answer to.
    async fn answer(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let asked = self.questions.fetch_add(1, Ordering::Relaxed);
        let query = match Query::parse(packet) {
            Ok(query) => query,
            Err(error) => {
                if asked < MAX_QUESTIONS {
                    let hint = format!(
                        "{error}; only single questions are answered in a cell, about A and AAAA"
                    );
                    let shown = "127.0.0.1:53";
                    self.call
                        .deny_as_shown(Adapter::Dns, shown, Reason::DnsTypeNotAllowed, hint);
                }
                return complaint(packet);
            }
        };
        let answer = if asked >= MAX_QUESTIONS {
            self.record(query.name(), Some(Reason::DnsBudgetExceeded), None, None);
            Answer::Refused
        } else {
            self.decide(&query).await
        };
        Some(query.answer(answer))
    }

    async fn decide(&self, query: &Query) -> Answer {
        let host = match Host::parse(query.name()) {
            Ok(host @ Host::Name(_)) => host,
            // Localhost and the like are in the hosts file; an address is no name.
            Ok(Host::Addr(_)) | Err(_) => {
                self.record(query.name(), Some(Reason::HostNotAllowed), None, None);
                return Answer::NxDomain;
            }
        };
        let Host::Name(name) = &host else {
            return Answer::NxDomain;
        };
        let rule = match self.call.decide(&host, Ask::Resolve) {
            Decision::Allow { rule, .. } => rule,
            Decision::Deny { reason, rule } => {
                self.record(query.name(), Some(reason), rule.as_deref(), Some(&host));
                return Answer::NxDomain;
            }
        };
        if self.call.secrets.clean_name(query.name()).is_err() {
            self.record(query.name(), Some(Reason::SecretLeak), None, Some(&host));
            return Answer::Refused;
        }
        if !matches!(query.kind(), TYPE_A | TYPE_AAAA) {
            self.record(
                query.name(),
                Some(Reason::DnsTypeNotAllowed),
                None,
                Some(&host),
            );
            return Answer::Refused;
        }
        if self.smells_of_a_tunnel(name) {
            self.record(
                query.name(),
                Some(Reason::DnsBudgetExceeded),
                None,
                Some(&host),
            );
            return Answer::Refused;
        }
        if self.call.meter.host(&host).is_err() {
            let (reason, hint) = (Reason::NetworkBudgetExceeded, hint::budget(Spent::Hosts));
            self.call
                .deny_as_shown(Adapter::Dns, query.name(), reason, hint);
            return Answer::Refused;
        }
        // Before it is asked for outside, so that there is one thing to say of it.
        let Some(synthetic) = self.call.names.assign(name) else {
            self.record(
                query.name(),
                Some(Reason::DnsBudgetExceeded),
                None,
                Some(&host),
            );
            return Answer::Refused;
        };
        let mut event = EgressEvent::new(Adapter::Dns, name.to_string(), None);
        event.rule = Some(rule);
        if self.call.ledger.write(&Entry::Asked(&event)).is_err() {
            return Answer::Refused;
        }
        match self.call.dialler.resolve(name).await {
            Ok(found) if !found.is_empty() => {}
            Ok(_) | Err(Unresolved::Absent) => return Answer::NxDomain,
            // A client must not remember as absent what is only out of reach.
            Err(Unresolved::Failed(_)) => return Answer::ServFail,
        }
        Answer::Address(if query.kind() == TYPE_A {
            synthetic.v4()
        } else {
            synthetic.v6()
        })
    }

    /// A name that only a wildcard allows, with a label that has room for data.
    fn smells_of_a_tunnel(&self, name: &DomainName) -> bool {
        let long = |label: &str| label.len() > MAX_WILDCARD_LABEL;
        name.as_str().split('.').any(long) && !self.call.egress.names_exactly(name)
    }

    fn record(&self, shown: &str, denied: Option<Reason>, rule: Option<&str>, host: Option<&Host>) {
        let mut event = EgressEvent::new(Adapter::Dns, shown, None);
        event.denied = denied;
        // Refused either way.
        self.call
            .ledger
            .write(&Entry::Asked(&event))
            .unwrap_or_default();
        if let Some(reason) = denied {
            let hint = match host {
                Some(host) => self.call.hint(reason, host, None, rule),
                None => "this is no host name that a rule could allow".to_owned(),
            };
            self.call.ledger.denial(shown, reason, hint);
        }
    }
}
