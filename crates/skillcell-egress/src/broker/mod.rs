//! Serves one call's door from outside the cell: names, connections and proxies, all of them
//! through one decision. Runs on a thread of its own and ends with the call.

mod base64;
mod call;
mod converse;
mod dial;
mod dns;
mod doors;
pub mod hint;
mod http;
mod inspect;
mod journal;
mod ledger;
mod meter;
mod names;
mod probation;
mod proxy;
mod relay;
mod secrets;
mod sieve;
mod socks;

pub use inspect::AuthorityError;
pub use journal::{Entry, Journal, NoJournal, Unwritten};
pub use ledger::Report;
pub use names::Names;
pub use secrets::{Place, Placeholder, Secret};

use call::Call;
use dial::Dialler;
use inspect::{Authority, Inspector};
use meter::Meter;
use rustix::fd::OwnedFd;
use skillcell_core::{Host, Reason};
use skillcell_policy::Egress;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, UdpSocket as StdUdp};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, oneshot};

/// For the call as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub connections: u64,
    pub requests: u64,
    pub hosts: u64,
}

/// Sockets that were opened inside the cell.
pub struct Doors {
    pub dns_udp: OwnedFd,
    pub dns_tcp: OwnedFd,
    pub listeners: Vec<OwnedFd>,
}

/// What the call may do.
pub struct Terms {
    pub egress: Egress,
    pub budget: Budget,
    pub secrets: Vec<Secret>,
    /// The operator's; `None` is the host's.
    pub resolver: Option<SocketAddr>,
    pub loopback: Loopback,
    /// Proxies of the caller's own, which a rule allows. What is said to a proxy names somebody
    /// else, so a client is not held to the proxy's name.
    pub proxies: Vec<(Host, u16)>,
    /// For hints.
    pub allow_line: AllowLine,
}

/// What loopback inside the cell leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// To the cell alone.
    Own,
    /// To the host's loopback where a rule names the address, or `localhost`; else to the cell.
    WhereNamed,
}

/// The line of policy that would allow a host and port.
pub type AllowLine = fn(&Host, u16) -> String;

#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("the egress broker can't be started")]
    Start(#[source] io::Error),
    #[error("the host's resolver settings can't be read")]
    Resolver(#[source] io::Error),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A broker that has everything but its doors: what can fail has been done.
pub struct Closed {
    call: Call,
    runtime: tokio::runtime::Runtime,
}

/// The running broker of one call.
pub struct Broker {
    call: Arc<Call>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Closed {
    /// Starts no thread, so that a cell can still be cloned after it.
    pub fn new(terms: Terms) -> Result<Closed, BrokerError> {
        let inspected = terms.egress.needs_inspection() || !terms.secrets.is_empty();
        let inspector = if inspected {
            Some(Inspector::new(Authority::new()?)?)
        } else {
            None
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(BrokerError::Start)?;
        let dialler = {
            let _inside = runtime.enter();
            Dialler::new(terms.resolver).map_err(BrokerError::Resolver)?
        };
        let call = Call {
            egress: terms.egress,
            names: Arc::default(),
            meter: Meter::new(terms.budget),
            ledger: ledger::Ledger::new(Arc::new(NoJournal)),
            connections: AtomicU64::new(0),
            dialler,
            secrets: secrets::Secrets::new(terms.secrets),
            inspector,
            slots: Arc::new(Semaphore::new(call::MAX_CONNECTIONS)),
            loopback: terms.loopback,
            proxies: terms.proxies,
            allow_line: terms.allow_line,
        };
        Ok(Closed { call, runtime })
    }

    /// The authority's certificate, where TLS is taken apart.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.call.inspector.as_ref().map(Inspector::certificate_pem)
    }

    /// Starts to serve. Nothing is reachable through the doors before, and nothing after the end.
    /// From here on everything is written to the journal.
    pub fn open(self, doors: Doors, journal: Arc<dyn Journal>) -> Result<Broker, BrokerError> {
        let Closed { mut call, runtime } = self;
        call.ledger = ledger::Ledger::new(journal);
        let call = Arc::new(call);
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&call);
        let thread = std::thread::Builder::new()
            .name("egress".into())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        ended = serve(served, doors) => ended,
                        // Told to stop, or the supervisor is gone: the same.
                        _ = stopped => Ok(()),
                    }
                })
            })
            .map_err(BrokerError::Start)?;
        Ok(Broker {
            call,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Broker {
    /// Which synthetic address stands for which name.
    pub fn names(&self) -> Arc<Names> {
        Arc::clone(&self.call.names)
    }

    /// Stops serving and tells what happened. Connections that are still open are cut.
    pub fn finish(mut self) -> Report {
        if let Err(why) = self.end() {
            // Its doors were shut from then on; the call saw refused connections, and is told why.
            let hint = format!("the egress broker ended before the call did: {why}");
            self.call
                .ledger
                .denial("everything", Reason::Internal, hint);
        }
        self.call.ledger.close(self.call.meter.totals())
    }

    fn end(&mut self) -> Result<(), String> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("it panicked".to_owned()),
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // On a path that has failed already; the doors are shut in any case.
        self.end().unwrap_or(());
    }
}

async fn serve(call: Arc<Call>, doors: Doors) -> io::Result<()> {
    let names = dns::NameServer::new(Arc::clone(&call));
    let udp = UdpSocket::from_std(StdUdp::from(doors.dns_udp))?;
    let tcp = listener(doors.dns_tcp)?;
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(Arc::clone(&names).serve_udp(udp));
    tasks.spawn(names.serve_tcp(tcp));
    for door in doors.listeners {
        tasks.spawn(doors::serve(Arc::clone(&call), listener(door)?));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}

fn listener(fd: OwnedFd) -> io::Result<TcpListener> {
    TcpListener::from_std(StdListener::from(fd))
}

/// Accepts, and waits where the process has no descriptors left, instead of giving up.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept().await {
            Ok(accepted) => return Ok(accepted),
            Err(error)
                if matches!(
                    error
                        .raw_os_error()
                        .map(rustix::io::Errno::from_raw_os_error),
                    Some(
                        rustix::io::Errno::MFILE
                            | rustix::io::Errno::NFILE
                            | rustix::io::Errno::NOBUFS
                            | rustix::io::Errno::NOMEM
                    )
                ) =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) => {}
            Err(error) => return Err(error),
        }
    }
}
