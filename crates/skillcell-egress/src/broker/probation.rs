//! A connection to a name on a port that isn't the web's, whose client hasn't shown what it speaks:
//! the server may have to begin, or the client sends less than a line. Bytes go on, and are still
//! read: as soon as they turn out to be HTTP, which names a host on every request, or a TLS hello
//! for another name, the connection is cut. A request line is told by its end, and the names come
//! after it, so nothing has been asked of anybody by then.

use super::call::{Call, Destination};
use super::converse::{Ended, MAX_OPENING, cut_short, fits, not_dialled, reset};
use super::dial::dial;
use super::meter::{Direction, Traffic};
use super::relay::{Cut, pump, read, send};
use crate::Progress;
use crate::sniff::{Sniff, Sniffer};
use crate::tls::client_hello::HelloReader;
use skillcell_core::Reason;
use tokio::net::TcpStream;

pub(super) async fn serve(
    call: &Call,
    client: TcpStream,
    to: &Destination,
    first: Vec<u8>,
    traffic: &Traffic,
) -> Ended {
    let server = match dial(call, to).await {
        Ok(server) => server,
        Err(error) => return not_dialled(client, &first, to, &error).await,
    };
    let address = server.peer_addr().ok().map(|a| a.ip());
    let out = async {
        if let Some(reason) = watched(call, &client, &server, to, first, traffic).await? {
            return Ok(Some(reason));
        }
        pump(&call.meter, traffic, Direction::Out, &client, &server).await?;
        Ok(None)
    };
    let into = pump(&call.meter, traffic, Direction::In, &server, &client);
    tokio::pin!(out, into);
    let end = tokio::select! {
        told = &mut out => match told {
            Ok(Some(reason)) => Err(reason),
            Ok(None) => Ok(into.await),
            Err(cut) => Ok(Err(cut)),
        },
        done = &mut into => match done {
            // The server has said its last; what the client still says is watched all the same.
            Ok(()) => match out.await {
                Ok(Some(reason)) => Err(reason),
                Ok(None) => Ok(Ok(())),
                Err(cut) => Ok(Err(cut)),
            },
            Err(cut) => Ok(Err(cut)),
        },
    };
    match end {
        Ok(end) => cut_short(call, to, &client, address, end),
        Err(reason) => {
            call.deny(to, reason, None);
            reset(&client);
            Ended {
                address,
                ..Ended::denied(reason)
            }
        }
    }
}

/// Passes bytes on until it is clear that they may go unwatched; a reason when they may not.
async fn watched(
    call: &Call,
    client: &TcpStream,
    server: &TcpStream,
    to: &Destination,
    first: Vec<u8>,
    traffic: &Traffic,
) -> Result<Option<Reason>, Cut> {
    let (mut bytes, mut sent) = (first, 0);
    let (mut sniffer, mut hello) = (Sniffer::default(), HelloReader::default());
    loop {
        let done = match sniffer.sniff(&bytes) {
            Sniff::Opaque => true,
            Sniff::NeedMore if bytes.len() < MAX_OPENING => false,
            Sniff::Tls => match hello.read(&bytes) {
                // Held: the name is in there.
                Progress::NeedMore if bytes.len() < MAX_OPENING => {
                    if !more(client, &mut bytes).await? {
                        return Ok(None);
                    }
                    continue;
                }
                Progress::Done(hello) => match fits(&hello, to) {
                    Ok(()) => true,
                    Err(reason) => return Ok(Some(reason)),
                },
                _ => return Ok(Some(Reason::TlsMalformed)),
            },
            _ => return Ok(Some(Reason::ProtocolNotAllowed)),
        };
        let fresh = bytes.get(sent..).unwrap_or_default();
        send(&call.meter, traffic, Direction::Out, server, fresh).await?;
        sent = bytes.len();
        if done || !more(client, &mut bytes).await? {
            return Ok(None);
        }
    }
}

/// False at the end of what the client says.
async fn more(client: &TcpStream, bytes: &mut Vec<u8>) -> Result<bool, Cut> {
    let mut buffer = [0u8; 4096];
    let length = read(client, &mut buffer).await?;
    bytes.extend_from_slice(&buffer[..length]);
    Ok(length > 0)
}
