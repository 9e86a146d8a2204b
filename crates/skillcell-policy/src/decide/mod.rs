//! One question, one answer: may this call do that with this host?
//!
//! Every way into the network (a DNS question, a transparent connection, a proxy request) becomes
//! an [`Intent`] and asks here, so they can't come to different answers. The rules are compiled
//! once into tables; a decision looks up the host and never walks the rules.

mod table;

use ipnet::IpNet;
use skillcell_core::{
    AddressClass, DomainName, Host, NormalPath, Reason, embedded_ipv4, is_public_suffix,
};
use skillcell_manifest::{DenyRule, EgressRule, HttpRule};
use std::collections::HashSet;
use std::net::IpAddr;
use table::Table;

/// A canonical host, and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    pub host: &'a Host,
    pub ask: Ask<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum Ask<'a> {
    /// A DNS question: allowed where some port of the host is.
    Resolve,
    Connect {
        port: u16,
    },
    /// An address that the host resolved to, or the host itself where it is an address.
    Dial {
        address: IpAddr,
        port: u16,
        /// An address of one of the host's own interfaces.
        own: bool,
    },
    Request {
        port: u16,
        method: &'a str,
        path: &'a NormalPath,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow {
        /// The place, in the list that was compiled, of a rule that allows it.
        rule: usize,
        /// Whether each request has to be asked for: no rule allows all requests to this host and
        /// port.
        inspect: bool,
    },
    Deny {
        reason: Reason,
        /// The `deny` entry or the class of the address, for people.
        rule: Option<String>,
    },
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allow { .. })
    }

    fn deny(reason: Reason) -> Self {
        Decision::Deny { reason, rule: None }
    }
}

/// Rules, compiled for asking.
#[derive(Debug)]
pub struct Egress {
    allow: Table<Ports>,
    deny: Table<Denied>,
    deny_texts: Vec<String>,
    /// The requests that each rule restricts itself to; empty for any.
    http: Vec<Vec<HttpRule>>,
    ports: Vec<u16>,
    near: HashSet<DomainName>,
}

/// What rules say about one host, by port in order.
#[derive(Debug, Default)]
struct Ports(Vec<(u16, OnPort)>);

#[derive(Debug, Default)]
struct OnPort {
    /// The first rule that allows any request.
    open: Option<usize>,
    /// Rules that allow some requests.
    http: Vec<usize>,
}

/// Places in `deny_texts`.
#[derive(Debug, Default)]
struct Denied {
    all: Option<usize>,
    ports: Vec<(u16, usize)>,
}

/// Whether an address is one of this host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Yes,
    No,
}

/// Which requests a rule must allow to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requests {
    All,
    Some,
}

/// What the rules about a host and a port come to.
#[derive(Debug, Default)]
struct Found {
    known: bool,
    open: Option<usize>,
    http: Option<usize>,
}

impl Egress {
    pub fn compile(rules: &[EgressRule], deny: &[DenyRule]) -> Self {
        let mut allow: Table<Ports> = Table::default();
        let mut ports = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            ports.extend(rule.effective_ports());
            for domain in &rule.domains {
                allow
                    .name_mut(domain.as_str(), domain.wildcard_base())
                    .add(rule, index);
            }
            for network in &rule.cidrs {
                allow.network_mut(*network).add(rule, index);
            }
        }
        ports.sort_unstable();
        ports.dedup();
        let mut denied: Table<Denied> = Table::default();
        let mut deny_texts = Vec::new();
        for rule in deny {
            for domain in &rule.domains {
                denied
                    .name_mut(domain.as_str(), domain.wildcard_base())
                    .add(rule, domain.as_str(), &mut deny_texts);
            }
            for network in &rule.cidrs {
                denied
                    .network_mut(*network)
                    .add(rule, &network.to_string(), &mut deny_texts);
            }
        }
        Egress {
            allow,
            deny: denied,
            deny_texts,
            http: rules.iter().map(|rule| rule.http.clone()).collect(),
            ports,
            near: HashSet::new(),
        }
    }

    /// Names that the caller's own settings give, as those of a package index on this host or in
    /// the caller's network: what they lead to may be loopback, private, or one of the host's own
    /// addresses. Never a cloud's control plane, link-local, or another kind of special address.
    /// A rule still has to allow the name, and a `deny` entry still wins.
    pub fn trusting(mut self, names: impl IntoIterator<Item = DomainName>) -> Self {
        self.near.extend(names);
        self
    }

    /// All ports that some rule names, in order.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether some rule names this very name, and not only a wildcard above it.
    pub fn names_exactly(&self, name: &DomainName) -> bool {
        self.allow.exact(name.as_str()).is_some()
    }

    /// Whether some rule is about single requests, which takes TLS apart.
    pub fn needs_inspection(&self) -> bool {
        self.http.iter().any(|http| !http.is_empty())
    }

    pub fn decide(&self, intent: &Intent<'_>) -> Decision {
        let host = intent.host;
        match intent.ask {
            Ask::Resolve => self.resolve(host),
            Ask::Connect { port } => self.connect(host, port),
            Ask::Dial { address, port, own } => self.dial(host, address, port, own),
            Ask::Request { port, method, path } => self.request(host, port, method, path),
        }
    }

    fn resolve(&self, host: &Host) -> Decision {
        let mut denied = None;
        let mut known = false;
        for (port, on_port) in self.about(host).flat_map(|ports| ports.0.iter()) {
            known = true;
            match self.denial(host, *port) {
                Some(denial) => denied = Some(denial),
                None => {
                    let rule = on_port.open.or_else(|| on_port.http.first().copied());
                    return Decision::Allow {
                        rule: rule.unwrap_or_default(),
                        inspect: false,
                    };
                }
            }
        }
        match denied {
            Some(denial) => denial,
            // A denied name is worth its own reason, also where no rule would have allowed it.
            None if !known => self.denied_on_every_port(host),
            None => Decision::deny(Reason::PortNotAllowed),
        }
    }

    fn connect(&self, host: &Host, port: u16) -> Decision {
        if let Some(denial) = self.denial(host, port) {
            return denial;
        }
        let found = self.find(host, port);
        let (rule, inspect) = match (found.open, found.http) {
            (Some(rule), _) => (rule, false),
            (None, Some(rule)) => (rule, true),
            (None, None) if found.known => return Decision::deny(Reason::PortNotAllowed),
            (None, None) => return Decision::deny(self.unknown()),
        };
        if let Host::Addr(address) = host
            && let Some(denial) = self.special(*address, port, Own::No, Requests::Some)
        {
            return denial;
        }
        Decision::Allow { rule, inspect }
    }

    fn dial(&self, host: &Host, address: IpAddr, port: u16, own: bool) -> Decision {
        let allowed = self.connect(host, port);
        if !allowed.is_allowed() {
            return allowed;
        }
        // Whoever asked about one address doesn't dial another.
        if host.address().is_some_and(|named| named != address) {
            return Decision::deny(Reason::HostNotAllowed);
        }
        if let Some(denial) = self.address_denial(address, port) {
            return denial;
        }
        // What the caller's own settings name may be near, but nothing more special than that.
        let near = matches!(
            AddressClass::of(address),
            AddressClass::Public | AddressClass::Private | AddressClass::Loopback
        );
        if near && matches!(host, Host::Name(name) if self.near.contains(name)) {
            return allowed;
        }
        // A rule about some requests to an address says nothing for a name that leads there.
        let requests = match host {
            Host::Addr(_) => Requests::Some,
            Host::Name(_) => Requests::All,
        };
        let own = if own { Own::Yes } else { Own::No };
        self.special(address, port, own, requests)
            .unwrap_or(allowed)
    }

    fn request(&self, host: &Host, port: u16, method: &str, path: &NormalPath) -> Decision {
        let connected = self.connect(host, port);
        if !matches!(connected, Decision::Allow { inspect: true, .. }) {
            return connected;
        }
        let matching = self
            .about(host)
            .filter_map(|ports| ports.on(port))
            .flat_map(|on_port| on_port.http.iter().copied())
            .filter(|rule| self.http[*rule].iter().any(|http| fits(http, method, path)))
            .min();
        match matching {
            Some(rule) => Decision::Allow {
                rule,
                inspect: true,
            },
            None => Decision::deny(Reason::HttpRequestNotAllowed),
        }
    }

    /// Everything that rules say about a host. A wildcard doesn't reach a public suffix.
    fn about<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = &'a Ports> {
        let exact = host.name().and_then(|name| self.allow.exact(name.as_str()));
        let mut above = host
            .name()
            .map(|name| self.allow.above(name.as_str()).peekable());
        // Asked only where a wildcard would match: the list of suffixes is long.
        let reaches = match (host.name(), above.as_mut()) {
            (Some(name), Some(above)) => above.peek().is_some() && !is_public_suffix(name.as_str()),
            _ => false,
        };
        let around = host
            .address()
            .into_iter()
            .flat_map(|address| self.allow.around(address).map(|(_, ports)| ports));
        exact
            .into_iter()
            .chain(above.filter(|_| reaches).into_iter().flatten())
            .chain(around)
    }

    fn find(&self, host: &Host, port: u16) -> Found {
        let mut found = Found::default();
        for ports in self.about(host) {
            found.known = true;
            if let Some(on_port) = ports.on(port) {
                found.open = first(found.open, on_port.open);
                found.http = first(found.http, on_port.http.first().copied());
            }
        }
        found
    }

    /// The denial of an address that is special and that no rule names. What stands for an IPv4
    /// address leads there, so both of them must be public or named.
    fn special(
        &self,
        address: IpAddr,
        port: u16,
        own: Own,
        requests: Requests,
    ) -> Option<Decision> {
        let inner = embedded_ipv4(address).map(IpAddr::V4);
        let kind = std::iter::once(address)
            .chain(inner)
            .find_map(|address| self.unnamed(address, port, own, requests))?;
        Some(Decision::Deny {
            reason: Reason::AddressNotPublic,
            rule: Some(format!("{kind} address")),
        })
    }

    /// The kind of a special address that no rule names. A rule names it when its network has no
    /// other addresses than special ones of that block: one for `0.0.0.0/0` is about the internet,
    /// and not meant to open the host's loopback. This host's own address is a block of one.
    fn unnamed(
        &self,
        address: IpAddr,
        port: u16,
        own: Own,
        requests: Requests,
    ) -> Option<&'static str> {
        let class = AddressClass::of(address);
        let (kind, at_least) = match (AddressClass::block(address), own) {
            // Loopback is nobody else's in the first place.
            (_, Own::Yes) if class != AddressClass::Loopback => {
                ("this host's own", IpNet::from(address).prefix_len())
            }
            (Some(block), _) => (class.as_str(), block.prefix_len()),
            (None, _) => return None,
        };
        let named = self
            .allow
            .around(address)
            .filter(|(length, _)| *length >= at_least)
            .filter_map(|(_, ports)| ports.on(port))
            .any(|on_port| requests == Requests::Some || on_port.open.is_some());
        (!named).then_some(kind)
    }

    fn denial(&self, host: &Host, port: u16) -> Option<Decision> {
        match host {
            Host::Name(name) => {
                let name = name.as_str();
                let mut entries = self
                    .deny
                    .exact(name)
                    .into_iter()
                    .chain(self.deny.above(name));
                let text = entries.find_map(|denied| denied.on(port))?;
                Some(self.denied_by(text))
            }
            Host::Addr(address) => self.address_denial(*address, port),
        }
    }

    /// What is denied as IPv4 is denied in every IPv6 dress too.
    fn address_denial(&self, address: IpAddr, port: u16) -> Option<Decision> {
        let inner = embedded_ipv4(address).map(IpAddr::V4);
        let text = std::iter::once(address)
            .chain(inner)
            .flat_map(|address| self.deny.around(address))
            .find_map(|(_, denied)| denied.on(port))?;
        Some(self.denied_by(text))
    }

    fn denied_on_every_port(&self, host: &Host) -> Decision {
        let all = host.name().and_then(|name| {
            let name = name.as_str();
            let mut entries = self
                .deny
                .exact(name)
                .into_iter()
                .chain(self.deny.above(name));
            entries.find_map(|denied| denied.all)
        });
        match all {
            Some(text) => self.denied_by(text),
            None => Decision::deny(self.unknown()),
        }
    }

    fn denied_by(&self, text: usize) -> Decision {
        Decision::Deny {
            reason: Reason::DeniedByRule,
            rule: self.deny_texts.get(text).cloned(),
        }
    }

    fn unknown(&self) -> Reason {
        if self.http.is_empty() {
            Reason::NetworkNotAllowed
        } else {
            Reason::HostNotAllowed
        }
    }
}

impl Ports {
    fn add(&mut self, rule: &EgressRule, index: usize) {
        for port in rule.effective_ports() {
            let at = match self.0.binary_search_by_key(port, |(port, _)| *port) {
                Ok(at) => at,
                Err(at) => {
                    self.0.insert(at, (*port, OnPort::default()));
                    at
                }
            };
            let on_port = &mut self.0[at].1;
            if rule.http.is_empty() {
                on_port.open = first(on_port.open, Some(index));
            } else {
                on_port.http.push(index);
            }
        }
    }

    fn on(&self, port: u16) -> Option<&OnPort> {
        let at = self.0.binary_search_by_key(&port, |(port, _)| *port).ok()?;
        Some(&self.0[at].1)
    }
}

impl Denied {
    fn add(&mut self, rule: &DenyRule, host: &str, texts: &mut Vec<String>) {
        if rule.ports.is_empty() {
            texts.push(format!("deny {host}"));
            self.all = Some(texts.len() - 1);
        }
        for port in &rule.ports {
            if let Err(at) = self.ports.binary_search_by_key(port, |(port, _)| *port) {
                texts.push(format!("deny {host} port {port}"));
                self.ports.insert(at, (*port, texts.len() - 1));
            }
        }
    }

    fn on(&self, port: u16) -> Option<usize> {
        self.all.or_else(|| {
            let at = self.ports.binary_search_by_key(&port, |(port, _)| *port);
            at.ok().map(|at| self.ports[at].1)
        })
    }
}

fn first(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn fits(rule: &HttpRule, method: &str, path: &NormalPath) -> bool {
    rule.methods.iter().any(|m| m == method) && rule.paths.iter().any(|p| path.matches(p))
}

#[cfg(test)]
mod tests;
