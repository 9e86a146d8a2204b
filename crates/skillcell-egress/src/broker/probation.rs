//! A connection to a name on a port that isn't the web's, whose client hasn't shown what it speaks:
//! the server may have to begin, or the client sends less than a line. Bytes go on, and are still
//! read. A request line of which the server hasn't heard yet is what it would have been at first, and
//! is served like that; in a call with secrets a TLS hello as well. As soon as what has begun to go on
//! turns out to be HTTP, which names a host on every request, or a TLS hello for another name, the
//! connection is cut. A request line is told by its end, and the names come after it, so nothing has
//! been asked of anybody by then.

use super::call::{Call, Destination};
use super::converse::{Ended, MAX_OPENING, cut_short, fits, not_dialled, reset};
use super::dial::dial;
use super::http;
use super::inspect;
use super::meter::{Direction, Traffic};
use super::relay::{Cut, next, outwards, pump, send};
use super::sieve::Sieve;
use crate::Progress;
use crate::sniff::{Sniff, Sniffer};
use crate::tls::client_hello::HelloReader;
use skillcell_core::Reason;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpStream;

/// How a TLS connection begins.
const HANDSHAKE: u8 = 0x16;

/// What it turned out to be.
enum Verdict {
    /// Nothing that has to be watched any more.
    Free,
    Refused(Reason),
    /// A hello, all of it, in a call with secrets: the connection has to be looked into. The server
    /// hasn't heard of it.
    Inspect(Vec<u8>),
    /// A request line, of which the server hasn't heard either: its client was only slow.
    Requests(Vec<u8>),
}

pub(super) async fn serve(
    call: &Arc<Call>,
    client: TcpStream,
    to: &Destination,
    first: Vec<u8>,
    traffic: &Arc<Traffic>,
) -> Ended {
    let server = match dial(call, to).await {
        Ok(server) => server,
        Err(error) => return not_dialled(client, &first, to, &error).await,
    };
    let address = server.peer_addr().ok().map(|a| a.ip());
    let end = {
        let out = async {
            let mut sieve = Sieve::new(call.secrets.scanner());
            let watched = watched(call, &client, &server, to, first, traffic, &mut sieve);
            let verdict = watched.await?;
            if let Verdict::Free = verdict {
                outwards(&call.meter, traffic, &client, &server, sieve).await?;
            }
            Ok(verdict)
        };
        let into = pump(&call.meter, traffic, Direction::In, &server, &client);
        tokio::pin!(out, into);
        tokio::select! {
            told = &mut out => match told {
                Ok(Verdict::Free) => into.await.map(|()| Verdict::Free),
                told => told,
            },
            done = &mut into => match done {
                // The server has said its last; what the client still says is watched all the same.
                Ok(()) => out.await,
                Err(cut) => Err(cut),
            },
        }
    };
    let refused = match (end, &call.inspector) {
        (Ok(Verdict::Free), _) => return cut_short(call, to, &client, address, Ok(())),
        (Err(cut), _) => return cut_short(call, to, &client, address, Err(cut)),
        (Ok(Verdict::Inspect(hello)), Some(inspector)) => {
            drop(server);
            return inspect::serve(call, inspector, client, hello, to, traffic).await;
        }
        (Ok(Verdict::Requests(line)), _) => {
            drop(server);
            return http::serve_plain(call, client, line, to, traffic).await;
        }
        (Ok(Verdict::Inspect(_)), None) => Reason::ProtocolNotAllowed,
        (Ok(Verdict::Refused(reason)), _) => reason,
    };
    call.deny(to, refused, None);
    reset(&client);
    Ended {
        address,
        ..Ended::denied(refused)
    }
}

/// Passes bytes on until it is clear what they are.
async fn watched(
    call: &Call,
    client: &TcpStream,
    server: &TcpStream,
    to: &Destination,
    first: Vec<u8>,
    traffic: &Traffic,
    sieve: &mut Sieve,
) -> Result<Verdict, Cut> {
    let mut buffer = [0u8; 4096];
    let (mut bytes, mut sent) = (first, 0);
    let (mut sniffer, mut hello) = (Sniffer::default(), HelloReader::default());
    loop {
        let (mut held, mut done) = (false, false);
        match sniffer.sniff(&bytes) {
            Sniff::Opaque => done = true,
            // In a call with secrets the server must not have heard of a hello.
            Sniff::NeedMore if bytes.len() < MAX_OPENING => {
                held = sieve.looks() && bytes.starts_with(&[HANDSHAKE]);
            }
            Sniff::Http1 if sent == 0 && traffic.into.load(Ordering::Relaxed) == 0 => {
                return Ok(Verdict::Requests(bytes));
            }
            Sniff::Tls => match hello.read(&bytes) {
                // The name is in there.
                Progress::NeedMore if bytes.len() < MAX_OPENING => held = true,
                Progress::Done(hello) => match fits(&hello, to) {
                    Ok(()) if !sieve.looks() => done = true,
                    // After what a server has said first it can't be looked into any more.
                    Ok(()) if traffic.into.load(Ordering::Relaxed) > 0 => {
                        return Ok(Verdict::Refused(Reason::ProtocolNotAllowed));
                    }
                    Ok(()) => return Ok(Verdict::Inspect(bytes)),
                    Err(reason) => return Ok(Verdict::Refused(reason)),
                },
                _ => return Ok(Verdict::Refused(Reason::TlsMalformed)),
            },
            _ => return Ok(Verdict::Refused(Reason::ProtocolNotAllowed)),
        }
        if !held {
            let fresh = bytes.get(sent..).unwrap_or_default();
            let ready = sieve.push(fresh).map_err(|_| Cut::Leak)?;
            send(&call.meter, traffic, Direction::Out, server, &ready).await?;
            sent = bytes.len();
        }
        if done {
            return Ok(Verdict::Free);
        }
        let length = next(&call.meter, traffic, client, server, sieve, &mut buffer).await?;
        if length == 0 {
            return Ok(Verdict::Free);
        }
        bytes.extend_from_slice(&buffer[..length]);
    }
}
