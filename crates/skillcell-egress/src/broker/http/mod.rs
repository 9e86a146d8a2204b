//! Requests, one by one: plain ones always, and those inside TLS where it is taken apart. Each is
//! read by one parser, checked, and written anew, so that what was checked is what is sent.

mod body;
mod exchange;
mod guarded;
mod hop_by_hop;
mod overrides;
mod returned;
mod upstream;
mod websocket;

use super::call::{Call, Destination, Refused};
use super::converse::Ended;
use super::inspect::Rewound;
use super::meter::Traffic;
use exchange::Exchange;
use guarded::Guarded;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use skillcell_core::{Adapter, Host};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use upstream::{Offer, Scheme};

/// How long a client may take over the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

// What a client asks for and doesn't take, or a server, waits here, and no limit of the cell holds the
// supervisor: so this is what one connection can hold.
/// Of HTTP/1: the longest head, and a part of a body.
const BUFFER: usize = 128 << 10;
/// Of HTTP/2: bodies on their way in, all streams together.
const WINDOW: u32 = 1 << 20;
/// Bodies on their way out, by stream.
const STREAM_BUFFER: usize = 32 << 10;
const MAX_STREAMS: u32 = 100;

pub(crate) const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// HTTP/1 in the clear, with `read` put back in front.
pub(crate) async fn serve_plain(
    call: &Arc<Call>,
    client: TcpStream,
    read: Vec<u8>,
    to: &Destination,
    traffic: &Arc<Traffic>,
) -> Ended {
    let exchange = Exchange::new(call, to, Scheme::Http, Offer::Http1, traffic);
    serve_http1(Rewound::new(read, client), &exchange).await;
    exchange.ended(false)
}

/// Either HTTP inside of TLS.
pub(crate) async fn serve_inspected<S>(
    call: &Arc<Call>,
    stream: S,
    http2: bool,
    to: &Destination,
    traffic: &Arc<Traffic>,
) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let offer = if http2 { Offer::Http2 } else { Offer::Http1 };
    let exchange = Exchange::new(call, to, Scheme::Https, offer, traffic);
    if http2 {
        serve_http2(stream, &exchange).await;
    } else {
        serve_http1(stream, &exchange).await;
    }
    exchange.ended(true)
}

async fn serve_http1<S>(stream: S, exchange: &Arc<Exchange>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (guarded, switch) = Guarded::new(stream, Arc::clone(exchange));
    let service = service_fn(|request| {
        let (exchange, switch) = (Arc::clone(exchange), switch.clone());
        async move { Ok::<_, std::convert::Infallible>(exchange.answer(request, Some(switch)).await) }
    });
    // A client of a proxy may use one connection for many hosts; here it gets one for each request.
    let keep_alive = exchange.to.adapter != Adapter::HttpForward;
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .keep_alive(keep_alive)
        .half_close(true)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(guarded), service)
        .with_upgrades()
        .await;
    // A broken connection has been seen by both ends; a fault has been recorded by the guard.
    drop(served);
    exchange.tunnels_done().await;
}

async fn serve_http2<S>(stream: S, exchange: &Arc<Exchange>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let exchange = Arc::clone(exchange);
        async move { Ok::<_, std::convert::Infallible>(exchange.answer(request, None).await) }
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(64 << 10)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(STREAM_BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    drop(served);
}

/// A whole answer for a client that is turned away before its request is served.
pub(crate) fn plain_denial(refused: &Refused) -> Vec<u8> {
    let body = format!("{}\n", refused.words);
    format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\n\
         x-skillcell-denied: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        refused.reason.code(),
        body.len()
    )
    .into_bytes()
}

/// The host and port of an authority. User information, and anything else that has two readings,
/// is nothing.
pub(crate) fn split_authority(authority: &str, default: Option<u16>) -> Option<(Host, u16)> {
    let after_host = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(after_host)?;
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default?,
        None => return None,
        Some(digits) => {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            digits.parse().ok()?
        }
    };
    Some((Host::parse(host).ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_has_one_reading_or_none() {
        let host = |text: &str| Host::parse(text).expect("a host");
        assert_eq!(
            split_authority("A.example.com.:8443", None),
            Some((host("a.example.com"), 8443))
        );
        assert_eq!(
            split_authority("[2001:db8::1]:443", None),
            Some((host("2001:db8::1"), 443))
        );
        assert_eq!(
            split_authority("[2001:db8::1]", Some(443)),
            Some((host("2001:db8::1"), 443))
        );
        for bad in [
            "a.example.com:",
            "a.example.com:+80",
            "u@a.example.com",
            "a.example.com:80:80",
            "[2001:db8::1",
            "[2001:db8::1]80",
            "",
            "a.example.com:80 ",
        ] {
            assert_eq!(split_authority(bad, Some(80)), None, "{bad}");
        }
    }
}
