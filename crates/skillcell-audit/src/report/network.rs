//! Whom a run talked to, or tried to.

use crate::export::call::target;
use crate::{Event, Record};
use skillcell_core::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that are shown.
const MAX: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Network {
    /// By host and port; names that were asked for have no port.
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) left_out: u64,
    /// More than were recorded.
    pub(super) dropped: u64,
    denied: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) names: u64,
    pub(super) connections: u64,
    pub(super) requests: u64,
    pub(super) bytes_out: u64,
    pub(super) bytes_in: u64,
    pub(super) millis: u64,
    pub(super) denied: u64,
    pub(super) reasons: BTreeSet<Reason>,
    pub(super) addresses: BTreeSet<String>,
}

impl Network {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::NameAsked(name) => {
                let denied = name.denied;
                if let Some(host) = self.host(&name.host, None) {
                    host.names += 1;
                    host.deny(denied);
                }
            }
            Event::ConnectionDecided(to) => {
                if to.denied.is_some() && self.denied.len() < MAX * 8 {
                    self.denied.insert(to.connection);
                }
                if let Some(host) = self.host(&to.host, to.port) {
                    host.deny(to.denied);
                }
            }
            Event::HttpRequest(request) => {
                if let Some(host) = self.host(&request.host, Some(request.port)) {
                    host.deny(request.denied);
                }
            }
            Event::ConnectionEnded(ended) => {
                let told = ended.connection.is_some_and(|c| self.denied.contains(&c));
                if let Some(host) = self.host(&ended.host, ended.port) {
                    host.connections += 1;
                    host.requests += ended.requests;
                    host.bytes_out = host.bytes_out.saturating_add(ended.bytes_out);
                    host.bytes_in = host.bytes_in.saturating_add(ended.bytes_in);
                    host.millis = host.millis.saturating_add(ended.millis);
                    if !told {
                        host.deny(ended.denied);
                    }
                    if let Some(address) = ended.address
                        && host.addresses.len() < 8
                    {
                        host.addresses.insert(address.to_string());
                    }
                }
            }
            Event::EgressDropped { count } => self.dropped += count,
            _ => {}
        }
    }

    fn host(&mut self, host: &str, port: Option<u16>) -> Option<&mut Host> {
        let name = target(host, port);
        if !self.hosts.contains_key(&name) && self.hosts.len() >= MAX {
            self.left_out += 1;
            return None;
        }
        Some(self.hosts.entry(name).or_default())
    }
}

impl Host {
    fn deny(&mut self, reason: Option<Reason>) {
        if let Some(reason) = reason {
            self.denied += 1;
            self.reasons.insert(reason);
        }
    }
}
