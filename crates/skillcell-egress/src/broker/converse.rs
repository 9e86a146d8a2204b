//! One connection whose destination is known: asks policy, holds what the client says against the
//! name, dials, and relays. Every adapter ends here.

use super::call::{Admitted, Call, Destination, Refused};
use super::dial::{DialError, dial};
use super::http;
use super::inspect;
use super::journal::Entry;
use super::meter::Traffic;
use super::probation;
use super::relay::{Cut, relay};
use crate::Progress;
use crate::sniff::{Sniff, Sniffer, sniff};
use crate::tls::client_hello::{ClientHello, HelloReader};
use skillcell_core::{Adapter, EgressEvent, Host, Reason};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A client that says nothing for this long on a port where it must speak first is let go.
const FIRST_BYTES: Duration = Duration::from_secs(30);
/// How long a client is waited for, where the server may be the one that speaks first.
const CLIENT_FIRST: Duration = Duration::from_millis(200);
/// Most bytes that are read before the client has shown what it speaks.
pub(super) const MAX_OPENING: usize = 80 << 10;
/// A fatal "access denied", in the clear: what a TLS client shows its user.
const TLS_DENIED: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31];

/// What a client opened with, and all of it that was read.
struct Opening {
    bytes: Vec<u8>,
    kind: Kind,
}

enum Kind {
    Tls(ClientHello),
    Http1,
    Opaque,
    /// Nothing that tells yet, on a port where the server may be the one to speak.
    Undecided,
}

/// Serves a connection to its end. The client has been told that it is connected.
pub(crate) async fn converse(call: &Arc<Call>, client: TcpStream, to: Destination, read: Vec<u8>) {
    let started = Instant::now();
    match call.admit(&to) {
        Err(refused) => {
            record_denied(call, &to, &refused);
            turn_away(client, &read, &refused).await;
        }
        Ok(admitted) => {
            let traffic = Arc::new(Traffic {
                connection: admitted.event.connection,
                ..Traffic::default()
            });
            let mut record = Record {
                call: Arc::clone(call),
                event: admitted.event.clone(),
                traffic: Arc::clone(&traffic),
                started,
            };
            record.event.open_at_end = true;
            let end = admitted_to(call, client, &to, admitted, read, &traffic).await;
            record.event.open_at_end = false;
            record.event.address = end.address;
            record.event.inspected = end.inspected;
            record.event.requests = end.requests;
            record.event.denied = end.denied;
        }
    }
}

/// One connection's event, written when it ends, also by the end of the call.
struct Record {
    call: Arc<Call>,
    event: EgressEvent,
    traffic: Arc<Traffic>,
    started: Instant,
}

impl Drop for Record {
    fn drop(&mut self) {
        let event = EgressEvent {
            bytes_out: self.traffic.out.load(Ordering::Relaxed),
            bytes_in: self.traffic.into.load(Ordering::Relaxed),
            millis: self.started.elapsed().as_millis() as u64,
            ..self.event.clone()
        };
        // What was let through has been written down before; a record that fails ends the call.
        self.call
            .ledger
            .write(&Entry::Ended(&event))
            .unwrap_or_default();
    }
}

/// What there is to say about a connection that policy let begin.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) address: Option<std::net::IpAddr>,
    pub(crate) inspected: bool,
    pub(crate) requests: u64,
    pub(crate) denied: Option<Reason>,
}

impl Ended {
    pub(super) fn denied(reason: Reason) -> Ended {
        Ended {
            denied: Some(reason),
            ..Ended::default()
        }
    }
}

pub(crate) fn record_denied(call: &Call, to: &Destination, refused: &Refused) {
    let mut event = EgressEvent::new(to.adapter, to.host.to_string(), Some(to.port));
    event.denied = Some(refused.reason);
    event.connection = Some(call.connections.fetch_add(1, Ordering::Relaxed) + 1);
    // Denied either way.
    call.ledger
        .write(&Entry::Decided(&event))
        .unwrap_or_default();
}

async fn admitted_to(
    call: &Arc<Call>,
    mut client: TcpStream,
    to: &Destination,
    admitted: Admitted,
    read: Vec<u8>,
    traffic: &Arc<Traffic>,
) -> Ended {
    let by_name = matches!(to.host, Host::Name(_));
    let forward = to.adapter == Adapter::HttpForward;
    let inspect = admitted.requests || admitted.secrets;
    if !inspect && !forward && (!by_name || call.is_proxy(to)) {
        // A rule by address, or a proxy: there is no name to hold the client to. What came as a
        // request to a proxy is one, and the next one on its connection may be for somebody else.
        return straight(call, client, to, &read, traffic).await;
    }
    let opening = match open(&mut client, to, admitted.requests, read).await {
        Ok(Some(opening)) => opening,
        Ok(None) => return Ended::default(),
        Err((reason, read)) => {
            let refused = call.deny(to, reason, None);
            turn_away(client, &read, &refused).await;
            return Ended::denied(reason);
        }
    };
    match opening.kind {
        Kind::Tls(hello) => {
            if let Err(reason) = fits(&hello, to) {
                let refused = call.deny(to, reason, None);
                turn_away(client, &opening.bytes, &refused).await;
                return Ended::denied(reason);
            }
            match &call.inspector {
                Some(inspector) if inspect => {
                    inspect::serve(call, inspector, client, opening.bytes, to, traffic).await
                }
                _ => straight(call, client, to, &opening.bytes, traffic).await,
            }
        }
        Kind::Http1 => http::serve_plain(call, client, opening.bytes, to, traffic).await,
        Kind::Opaque => straight(call, client, to, &opening.bytes, traffic).await,
        Kind::Undecided => probation::serve(call, client, to, opening.bytes, traffic).await,
    }
}

/// Reads until it is clear what the client speaks. `None` when it left.
async fn open(
    client: &mut TcpStream,
    to: &Destination,
    requests: bool,
    mut bytes: Vec<u8>,
) -> Result<Option<Opening>, (Reason, Vec<u8>)> {
    // On the web's ports the client speaks first, in TLS or HTTP; so it does where requests count.
    // A rule by address is about an address, whatever is said to it.
    let by_name = matches!(to.host, Host::Name(_));
    let web = requests || by_name && matches!(to.port, 80 | 443);
    let patience = if web { FIRST_BYTES } else { CLIENT_FIRST };
    let (mut sniffer, mut hello) = (Sniffer::default(), HelloReader::default());
    loop {
        let step = match sniffer.sniff(&bytes) {
            Sniff::NeedMore => None,
            Sniff::Http1 => Some(Kind::Http1),
            Sniff::Opaque if web => return Err((Reason::ProtocolNotAllowed, bytes)),
            Sniff::Opaque => Some(Kind::Opaque),
            Sniff::Http2 => return Err((Reason::ProtocolNotAllowed, bytes)),
            Sniff::Refused(_) => return Err((Reason::HttpMalformed, bytes)),
            Sniff::Tls => match hello.read(&bytes) {
                Progress::NeedMore => None,
                Progress::Done(hello) => Some(Kind::Tls(hello)),
                Progress::Malformed(_) => return Err((Reason::TlsMalformed, bytes)),
            },
        };
        if let Some(kind) = step {
            return Ok(Some(Opening { bytes, kind }));
        }
        if bytes.len() >= MAX_OPENING {
            return Err((Reason::ProtocolNotAllowed, bytes));
        }
        bytes.reserve(4096);
        match timeout(patience, client.read_buf(&mut bytes)).await {
            Ok(Ok(0) | Err(_)) => return Ok(None),
            Ok(Ok(_)) => {}
            // A hello that has begun is waited for; so is everything where the client must begin.
            Err(_) if web || sniff(&bytes) == Sniff::Tls => return Ok(None),
            Err(_) => {
                return Ok(Some(Opening {
                    bytes,
                    kind: Kind::Undecided,
                }));
            }
        }
    }
}

/// Whether a ClientHello is for the name that was connected to.
pub(super) fn fits(hello: &ClientHello, to: &Destination) -> Result<(), Reason> {
    if hello.encrypted {
        return Err(Reason::TlsEncryptedHello);
    }
    match (&hello.server_name, &to.host) {
        // To an address a name may be missing, and says nothing that could be checked.
        (_, Host::Addr(_)) => Ok(()),
        (None, Host::Name(_)) => Err(Reason::TlsNoServerName),
        (Some(said), name) => match Host::parse(said) {
            Ok(host) if host == *name => Ok(()),
            _ => Err(Reason::TlsServerNameMismatch),
        },
    }
}

/// Dials and moves bytes that nobody needs to understand.
async fn straight(
    call: &Call,
    client: TcpStream,
    to: &Destination,
    read: &[u8],
    traffic: &Traffic,
) -> Ended {
    let server = match dial(call, to).await {
        Ok(server) => server,
        Err(error) => return not_dialled(client, read, to, &error).await,
    };
    let address = server.peer_addr().ok().map(|a| a.ip());
    let end = relay(
        &call.meter,
        traffic,
        &client,
        &server,
        read,
        call.secrets.scanner(),
    )
    .await;
    cut_short(call, to, &client, address, end)
}

pub(super) fn cut_short(
    call: &Call,
    to: &Destination,
    client: &TcpStream,
    address: Option<std::net::IpAddr>,
    end: Result<(), Cut>,
) -> Ended {
    let denied = match end {
        Ok(()) => None,
        // Either side may break off; that is between the two of them.
        Err(Cut::Broken) => {
            reset(client);
            None
        }
        Err(Cut::Spent(spent)) => {
            reset(client);
            Some(call.deny_spent(to, spent).reason)
        }
        Err(Cut::Leak) => {
            reset(client);
            Some(call.deny(to, Reason::SecretLeak, None).reason)
        }
    };
    Ended {
        address,
        denied,
        ..Ended::default()
    }
}

pub(super) async fn not_dialled(
    client: TcpStream,
    read: &[u8],
    to: &Destination,
    error: &DialError,
) -> Ended {
    let refused = Refused {
        reason: error.reason().unwrap_or(Reason::ResolveFailed),
        words: error.words(to),
    };
    turn_away(client, read, &refused).await;
    Ended {
        denied: error.reason(),
        ..Ended::default()
    }
}

/// Tells a client in its own protocol, where it has shown one; otherwise its connection is reset,
/// which is the quickest "no" that there is.
async fn turn_away(mut client: TcpStream, read: &[u8], refused: &Refused) {
    use tokio::io::AsyncWriteExt;
    let told = match sniff(read) {
        Sniff::Tls => client.write_all(&TLS_DENIED).await.is_ok(),
        Sniff::Http1 | Sniff::Refused(_) => {
            client.write_all(&http::plain_denial(refused)).await.is_ok()
        }
        _ => false,
    };
    if told {
        // Unread bytes would turn the close into a reset that overtakes the answer.
        client.shutdown().await.unwrap_or(());
        let mut rest = [0u8; 4096];
        let drain = async { while matches!(client.read(&mut rest).await, Ok(n) if n > 0) {} };
        timeout(Duration::from_millis(200), drain)
            .await
            .unwrap_or(());
    } else {
        reset(&client);
    }
}

/// The close that follows becomes a reset.
pub(crate) fn reset(client: &TcpStream) {
    // Should it fail, the client sees an end instead of a reset.
    rustix::net::sockopt::set_socket_linger(client, Some(Duration::ZERO)).unwrap_or(());
}

/// A destination that no rule could name, such as one of the cell's own.
pub(crate) async fn refuse_outright(
    call: &Call,
    client: TcpStream,
    host: Host,
    port: u16,
    reason: Reason,
) {
    let to = Destination {
        adapter: Adapter::Transparent,
        host,
        port,
    };
    let refused = call.deny_whole(&to, reason, None);
    record_denied(call, &to, &refused);
    reset(&client);
}
