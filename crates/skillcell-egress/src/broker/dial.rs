//! Resolves, checks every address, and dials the very addresses that were checked.

use super::call::{Call, Destination, Refused};
use super::hint;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use skillcell_core::{DomainName, Host, Reason, embedded_ipv4};
use skillcell_policy::{Ask, Decision};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How far apart attempts start (RFC 8305), and how long one may take.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer stands, whatever the server says: what a client was told and what is dialled
/// for it are one answer.
const FRESH: Duration = Duration::from_secs(30);
/// A name with more addresses than this is cut, not refused.
const MAX_ADDRESSES: usize = 32;

pub(crate) struct Dialler {
    resolver: TokioResolver,
    /// What each name of the call meant when it was last asked.
    known: Mutex<HashMap<DomainName, Arc<Lookup>>>,
}

/// One name's addresses. Held while the question is out, so that it is asked once for all who wait.
type Lookup = tokio::sync::Mutex<Option<(Instant, Vec<IpAddr>)>>;

#[derive(Debug)]
pub(crate) enum DialError {
    Refused(Refused),
    Unresolved(Unresolved),
    Unreachable(io::Error),
}

/// Why there is no address for a name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the name has no address")]
    Absent,
    /// The resolver failed, or didn't answer.
    #[error("{0}")]
    Failed(String),
}

impl Dialler {
    /// The host's resolver, or the one that the operator named.
    pub(crate) fn new(resolver: Option<SocketAddr>) -> io::Result<Dialler> {
        let builder = match resolver {
            None => TokioResolver::builder_tokio().map_err(io::Error::other)?,
            Some(server) => {
                let mut config = NameServerConfig::udp_and_tcp(server.ip());
                config.connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
                for connection in &mut config.connections {
                    connection.port = server.port();
                }
                TokioResolver::builder_with_config(
                    ResolverConfig::from_name_servers(vec![config]),
                    TokioRuntimeProvider::default(),
                )
            }
        };
        let resolver = builder.build().map_err(io::Error::other)?;
        Ok(Dialler {
            resolver,
            known: Mutex::default(),
        })
    }

    /// Every address of a name. Asked only for names that policy allows.
    pub(crate) async fn resolve(&self, name: &DomainName) -> Result<Vec<IpAddr>, Unresolved> {
        let lookup = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(name.clone()).or_default())
        };
        let mut held = lookup.lock().await;
        if let Some((when, addresses)) = &*held
            && when.elapsed() < FRESH
        {
            return Ok(addresses.clone());
        }
        let addresses = self.ask(name).await?;
        *held = Some((Instant::now(), addresses.clone()));
        Ok(addresses)
    }

    async fn ask(&self, name: &DomainName) -> Result<Vec<IpAddr>, Unresolved> {
        // The closing dot keeps the host's search list out of it.
        let lookup = self.resolver.lookup_ip(format!("{name}."));
        match timeout(RESOLVE_TIMEOUT, lookup).await {
            Ok(Ok(found)) => Ok(found.iter().take(MAX_ADDRESSES).collect()),
            Ok(Err(error)) if error.is_no_records_found() => Err(Unresolved::Absent),
            Ok(Err(error)) => Err(Unresolved::Failed(error.to_string())),
            Err(_) => Err(Unresolved::Failed(
                "the resolver didn't answer in time".to_owned(),
            )),
        }
    }
}

/// Connects to a destination that policy allows, if one of its addresses may be dialled.
pub(crate) async fn dial(call: &Call, to: &Destination) -> Result<TcpStream, DialError> {
    let found = match &to.host {
        Host::Addr(address) => vec![*address],
        Host::Name(name) => call
            .dialler
            .resolve(name)
            .await
            .map_err(DialError::Unresolved)?,
    };
    let mut permitted = Vec::new();
    let mut refused = None;
    for address in found {
        // What was checked is what is dialled, as it came: an IPv4 address in IPv6 clothes is one of
        // the kinds that are refused.
        let ask = Ask::Dial {
            address,
            port: to.port,
            own: is_own(address)
                || embedded_ipv4(address).is_some_and(|inner| is_own(inner.into())),
        };
        match call.decide(&to.host, ask) {
            Decision::Allow { .. } => permitted.push(SocketAddr::new(address, to.port)),
            Decision::Deny { reason, rule } => refused = Some((address, reason, rule)),
        }
    }
    if permitted.is_empty() {
        return Err(match refused {
            Some((address, Reason::AddressNotPublic, kind)) => {
                let hint = hint::not_public(call.allow_line, address, to.port, kind.as_deref());
                DialError::Refused(call.refuse(to, Reason::AddressNotPublic, hint))
            }
            Some((_, reason, rule)) => DialError::Refused(call.deny(to, reason, rule.as_deref())),
            None => DialError::Unresolved(Unresolved::Absent),
        });
    }
    race(alternate(permitted))
        .await
        .map_err(DialError::Unreachable)
}

/// Whether an address is one of this host's: the kernel then takes it as the source towards itself.
/// Asked for each dial, since interfaces come and go.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // No packet is sent by connecting a datagram socket. Without a route there is no way to the
    // address at all, and the dial fails as well; what can't be found out counts as its own.
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    match source {
        Ok(local) => local.ip() == address,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable
        ),
    }
}

/// IPv6 and IPv4 in turn, each in the resolver's order.
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv6);
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let mut order = Vec::new();
    loop {
        match (v6.next(), v4.next()) {
            (None, None) => return order,
            (a, b) => order.extend(a.into_iter().chain(b)),
        }
    }
}

/// The first attempt that succeeds; the next starts when the one before fails or is slow.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut running = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match waiting.next() {
            Some(address) => {
                running.spawn(attempt(address));
            }
            None if running.is_empty() => return Err(last),
            None => {}
        }
        let more = waiting.len() > 0;
        let joined = if more {
            match timeout(ATTEMPT_DELAY, running.join_next()).await {
                Ok(joined) => joined,
                Err(_) => continue,
            }
        } else {
            running.join_next().await
        };
        match joined {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => last = error,
            Some(Err(error)) => last = io::Error::other(error),
            None => {}
        }
    }
}

async fn attempt(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = timeout(ATTEMPT_TIMEOUT, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl DialError {
    /// The denial behind it, if policy said no; a server that isn't there is nobody's denial.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            DialError::Refused(refused) => Some(refused.reason),
            DialError::Unresolved(_) | DialError::Unreachable(_) => None,
        }
    }

    pub(crate) fn words(&self, to: &Destination) -> String {
        match self {
            DialError::Refused(refused) => refused.words.clone(),
            DialError::Unresolved(why) => {
                format!("skillcell: {} can't be resolved: {why}", to.host)
            }
            DialError::Unreachable(error) => {
                format!(
                    "skillcell: {} port {} can't be reached: {error}",
                    to.host, to.port
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_address_of_this_host() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own("192.0.2.77".parse().expect("an address")));
    }

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let (a, b) = (address("192.0.2.1:1"), address("192.0.2.2:1"));
        let c = address("[2001:db8::1]:1");
        assert_eq!(alternate(vec![a, b, c]), [c, a, b]);
    }

    #[tokio::test]
    async fn a_dead_address_doesn_t_keep_from_the_next() {
        let live = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a listener");
        let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let dead_address = dead.local_addr().expect("its address");
        drop(dead);
        let stream = race(vec![dead_address, live.local_addr().expect("its address")]).await;
        assert!(stream.is_ok());
        assert!(race(vec![dead_address]).await.is_err());
    }
}
