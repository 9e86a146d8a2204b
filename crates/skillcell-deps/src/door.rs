//! The network of a build cell: the same door that skills have, with rules from the user's own index
//! settings. Without rules it is shut, and still tells what was tried.

use crate::reach::Reach;
use crate::{DepsError, NetworkTerms};
use skillcell_core::{Denial, Denials, HTTP_PROXY_PORT, Host};
use skillcell_egress::{Broker, Budget, Closed, Doors, Loopback, NoJournal, Terms};
use skillcell_linux::cell::{Cell, NetworkSpace};
use skillcell_policy::Egress;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Where the cell looks names up. A burst of questions may need a second try.
pub(crate) const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:2 attempts:4\n";

/// As for skills: each is a listener whose descriptor is held.
const MAX_PORTS: usize = 128;
/// Always listened on, so that attempts on them are told.
const WEB: [u16; 2] = [80, 443];

/// Everything but the cell's sockets: what can fail has been done.
pub(crate) struct Door {
    closed: Closed,
    ports: Vec<u16>,
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Door {
    /// Starts no thread, so that a cell can still be made.
    pub(crate) fn make(
        reach: &Reach,
        terms: &NetworkTerms<'_>,
        disk: u64,
    ) -> Result<Door, DepsError> {
        let egress = Egress::compile(&reach.rules, terms.deny).trusting(reach.near.iter().cloned());
        let mut ports: Vec<u16> = egress.ports().iter().copied().chain(WEB).collect();
        ports.sort_unstable();
        ports.dedup();
        if ports.len() > MAX_PORTS {
            return Err(DepsError::NotConfinable(
                "index settings and policy name more than 128 ports",
            ));
        }
        // Where no name is allowed none is ever looked up, and a host without a resolver will do.
        let unused = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
        let by_name = reach.rules.iter().any(|rule| !rule.domains.is_empty());
        let closed = Closed::new(Terms {
            egress,
            budget: Budget {
                bytes_out: disk,
                bytes_in: disk.saturating_mul(2),
                connections: 100_000,
                requests: 1_000_000,
                hosts: 4096,
            },
            secrets: Vec::new(),
            resolver: if by_name {
                terms.resolver
            } else {
                Some(unused)
            },
            loopback: Loopback::WhereNamed,
            proxies: reach.proxies.clone(),
            allow_line,
        })?;
        Ok(Door {
            closed,
            ports,
            variables: variables(reach),
        })
    }

    pub(crate) fn space(&self) -> NetworkSpace {
        NetworkSpace::Brokered {
            ports: self.ports.clone(),
        }
    }

    /// Serves the cell's sockets from now on, by a thread that ends with the broker.
    pub(crate) fn open(self, cell: &mut Cell) -> Result<Broker, DepsError> {
        let (dns_udp, dns_tcp) = cell.dns.take().ok_or(DepsError::NotConfinable(
            "it handed over no sockets for its network",
        ))?;
        let doors = Doors {
            dns_udp,
            dns_tcp,
            listeners: std::mem::take(&mut cell.doors),
        };
        // An install is no call: what it was denied is told, and not in the log of calls.
        Ok(self.closed.open(doors, Arc::new(NoJournal))?)
    }
}

/// Who may be reached is connected to directly. Everybody else is asked of the door's own proxy,
/// which knows the port of what it denies, and says so in words that a client can show. A proxy of
/// the user's own stays what it is.
fn variables(reach: &Reach) -> Vec<(&'static str, String)> {
    if reach.proxied {
        return Vec::new();
    }
    let domains = reach.rules.iter().flat_map(|rule| &rule.domains);
    let names = domains.map(|d| d.as_str().trim_start_matches('*').to_owned());
    let networks = reach.rules.iter().flat_map(|rule| &rule.cidrs);
    let addresses = networks.map(|net| match net.prefix_len() == net.max_prefix_len() {
        true => net.addr().to_string(),
        false => net.to_string(),
    });
    let direct = names.chain(addresses).collect::<Vec<_>>().join(",");
    let door = format!("http://127.0.0.1:{HTTP_PROXY_PORT}");
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]
        .into_iter()
        .map(|name| (name, door.clone()))
        .chain(["NO_PROXY", "no_proxy"].map(|name| (name, direct.clone())))
        .collect()
}

/// In the operator's policy.
fn allow_line(host: &Host, port: u16) -> String {
    let hosts = match host {
        Host::Name(name) => format!("domains: [{name}]"),
        Host::Addr(address @ IpAddr::V4(_)) => format!("cidrs: [{address}/32]"),
        Host::Addr(address @ IpAddr::V6(_)) => format!("cidrs: [\"{address}/128\"]"),
    };
    let ports = match port {
        443 => String::new(),
        port => format!(", ports: [{port}]"),
    };
    format!(
        "policy line: `dependencies: {{index_hosts: [{{{hosts}{ports}}}]}}`, in the operator's policy"
    )
}

/// What was denied, without what only repeats it: a client may look a name up and then ask the
/// proxy for it.
pub(crate) fn distinct(denials: Vec<Denial>) -> Vec<Denial> {
    let with_port: Vec<String> = denials.iter().map(|d| d.target.clone()).collect();
    let repeated = |denial: &Denial| {
        let start = format!("{}:", denial.target);
        with_port.iter().any(|target| target.starts_with(&start))
    };
    let kept = denials.into_iter().filter(|denial| !repeated(denial));
    kept.take(Denials::MAX_DISTINCT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillcell_core::{DenialKind, Reason};

    #[test]
    fn the_line_that_would_allow_a_host_has_its_port_unless_that_is_443() {
        let line = |host: &str, port| allow_line(&Host::parse(host).unwrap(), port);
        assert!(
            line("files.example.com", 443)
                .contains("`dependencies: {index_hosts: [{domains: [files.example.com]}]}`")
        );
        assert!(line("192.0.2.1", 8080).contains("[{cidrs: [192.0.2.1/32], ports: [8080]}]"));
    }

    #[test]
    fn a_name_that_was_denied_with_its_port_is_told_once() {
        let denial = |target: &str| Denial {
            kind: DenialKind::Network,
            target: target.to_owned(),
            reason: Reason::HostNotAllowed,
            count: 1,
            hint: String::new(),
        };
        let told = distinct(vec![
            denial("a.example"),
            denial("a.example:443"),
            denial("b"),
        ]);
        let told: Vec<_> = told.iter().map(|d| d.target.as_str()).collect();
        assert_eq!(told, ["a.example:443", "b"]);
    }
}
