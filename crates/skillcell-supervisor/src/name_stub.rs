//! Answers the names that a cell without network asks for: each is refused at once, and recorded.

use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use skillcell_audit::{Denied, Event, Recorder};
use skillcell_core::{DenialKind, Denials, Host, Reason};
use skillcell_egress::{Question, hint};
use std::sync::Arc;

const MAX_CLIENTS: usize = 16;

pub(crate) struct NameStub {
    sockets: Option<(OwnedFd, OwnedFd)>,
    /// DNS over TCP: clients that have connected and not asked yet.
    clients: Vec<OwnedFd>,
    recorder: Arc<Recorder>,
    denials: Denials,
}

impl NameStub {
    pub(crate) fn new(sockets: Option<(OwnedFd, OwnedFd)>, recorder: Arc<Recorder>) -> Self {
        NameStub {
            sockets,
            clients: Vec::new(),
            recorder,
            denials: Denials::default(),
        }
    }

    pub(crate) fn push<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if let Some((udp, tcp)) = &self.sockets {
            fds.push(PollFd::new(udp, PollFlags::IN));
            fds.push(PollFd::new(tcp, PollFlags::IN));
        }
        fds.extend(self.clients.iter().map(|c| PollFd::new(c, PollFlags::IN)));
    }

    /// Serves what is ready, in the order of `push`.
    pub(crate) fn serve(&mut self, ready: &[bool]) {
        let [udp, tcp, clients @ ..] = ready else {
            return;
        };
        self.serve_clients(clients);
        if *udp {
            self.serve_udp();
        }
        if *tcp {
            self.accept();
        }
    }

    pub(crate) fn into_denials(self) -> Denials {
        self.denials
    }

    /// Records a refused name. False where it can't be recorded: then nobody is answered, and the
    /// watch ends the call.
    fn record(&mut self, question: &Question) -> bool {
        let name = self.recorder.redactor().clean(&question.name);
        let hint = match Host::parse(&question.name) {
            Ok(host) => hint::allow_line(&host, 443),
            Err(_) => "this is no host name that a rule could allow".to_owned(),
        };
        self.denials
            .record(DenialKind::Network, &name, Reason::NetworkNotAllowed, hint);
        let event = Event::Denied(Denied {
            kind: DenialKind::Network,
            target: self.recorder.text(name.as_bytes()),
            reason: Reason::NetworkNotAllowed,
            syscall: None,
        });
        self.recorder.decide(None, &event).is_ok()
    }

    fn serve_udp(&mut self) {
        let mut packet = [0u8; 1500];
        // A burst at a time, so that a flood of questions can't keep the loop from its clock.
        for _ in 0..64 {
            let Some((udp, _)) = &self.sockets else {
                return;
            };
            let Ok((length, _, Some(from))) =
                rustix::net::recvfrom(udp, &mut packet, RecvFlags::DONTWAIT)
            else {
                return;
            };
            let Some((question, answer)) = skillcell_egress::refuse(&packet[..length]) else {
                continue;
            };
            if self.record(&question)
                && let Some((udp, _)) = &self.sockets
            {
                // A skill that doesn't take its answer has only itself to blame.
                rustix::net::sendto(udp, &answer, SendFlags::DONTWAIT, &from).unwrap_or(0);
            }
        }
    }

    fn accept(&mut self) {
        let Some((_, tcp)) = &self.sockets else {
            return;
        };
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        if let Ok(client) = rustix::net::accept_with(tcp, flags)
            && self.clients.len() < MAX_CLIENTS
        {
            self.clients.push(client);
        }
    }

    fn serve_clients(&mut self, ready: &[bool]) {
        let mut kept = Vec::new();
        for (index, client) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            if ready.get(index) != Some(&true) {
                kept.push(client);
                continue;
            }
            // One whole question per connection; anything else is closed.
            let mut packet = [0u8; 2048];
            let Ok((_, length)) = rustix::net::recv(&client, &mut packet, RecvFlags::DONTWAIT)
            else {
                continue;
            };
            if let Some((question, answer)) =
                packet.get(2..length).and_then(skillcell_egress::refuse)
                && self.record(&question)
            {
                let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
                framed.extend_from_slice(&answer);
                rustix::net::send(&client, &framed, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                    .unwrap_or(0);
            }
        }
        self.clients = kept;
    }
}
