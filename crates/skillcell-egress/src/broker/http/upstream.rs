//! The other side of an exchange: a connection to a checked address, in TLS where the client's was.

use super::super::call::{Call, Destination};
use super::super::dial::{DialError, dial};
use super::super::meter::{Direction, Spent, Traffic};
use super::body::{BoxError, Outgoing};
use super::{BUFFER, STREAM_BUFFER, WINDOW};
use hyper::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use skillcell_core::Host;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    pub(super) fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// What is offered to the server: what the client speaks, and upgrades exist in HTTP/1 only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    Http1,
    /// HTTP/2, or HTTP/1 where the server has nothing better.
    Http2,
}

pub(super) type Upstream = Client<Connector, Outgoing>;

pub(super) fn client(connector: Connector) -> Upstream {
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(1)
        .http1_max_buf_size(BUFFER)
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW)
        .http2_max_send_buf_size(STREAM_BUFFER)
        .build(connector)
}

/// Dials one destination only, whatever a request's address says: that was checked before.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) call: Arc<Call>,
    pub(super) to: Destination,
    pub(super) scheme: Scheme,
    pub(super) offer: Offer,
    pub(super) traffic: Arc<Traffic>,
}

/// Why there is no connection to the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("it can't be dialled")]
    Dial(DialError),
    #[error("TLS with the server failed: {0}")]
    Tls(io::Error),
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Metered>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { Ok(TokioIo::new(connector.connect().await?)) })
    }
}

impl Connector {
    async fn connect(self) -> Result<Metered, ConnectError> {
        let stream = dial(&self.call, &self.to)
            .await
            .map_err(ConnectError::Dial)?;
        let link = match (self.scheme, &self.call.inspector) {
            (Scheme::Http, _) => Link::Plain(stream),
            (Scheme::Https, None) => {
                let error = io::Error::other("nothing here may take TLS apart");
                return Err(ConnectError::Tls(error));
            }
            (Scheme::Https, Some(inspector)) => {
                let config = match self.offer {
                    Offer::Http2 => &inspector.upstream,
                    Offer::Http1 => &inspector.upstream_http1,
                };
                let name = match &self.to.host {
                    Host::Name(name) => ServerName::try_from(name.as_str().to_owned())
                        .map_err(|e| ConnectError::Tls(io::Error::other(e)))?,
                    Host::Addr(address) => ServerName::from(*address),
                };
                let tls = TlsConnector::from(Arc::clone(config))
                    .connect(name, stream)
                    .await
                    .map_err(ConnectError::Tls)?;
                Link::Tls(Box::new(tls))
            }
        };
        Ok(Metered {
            link,
            call: self.call,
            to: self.to,
            traffic: self.traffic,
        })
    }
}

enum Link {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection to a server whose bytes are counted, as the requests and answers that they carry.
pub(super) struct Metered {
    link: Link,
    call: Arc<Call>,
    to: Destination,
    traffic: Arc<Traffic>,
}

impl Metered {
    fn count(&self, way: Direction, bytes: usize) -> io::Result<()> {
        self.call
            .meter
            .moved(way, bytes as u64, &self.traffic)
            .map_err(|spent: Spent| {
                self.call.deny_spent(&self.to, spent);
                io::Error::other("the call's budget is used up")
            })
    }
}

impl Connection for Metered {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        match &self.link {
            Link::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2") => {
                connected.negotiated_h2()
            }
            _ => connected,
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = match &mut self.link {
            Link::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Link::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if let Poll::Ready(Ok(())) = polled {
            self.count(Direction::In, buffer.filled().len() - before)?;
        }
        polled
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = usize::try_from(self.call.meter.room(Direction::Out)).unwrap_or(usize::MAX);
        if room == 0 && !bytes.is_empty() {
            self.count(Direction::Out, bytes.len())?;
        }
        let bytes = &bytes[..bytes.len().min(room)];
        let polled = match &mut self.link {
            Link::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Link::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        if let Poll::Ready(Ok(written)) = polled {
            self.count(Direction::Out, written)?;
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.link {
            Link::Plain(stream) => Pin::new(stream).poll_flush(context),
            Link::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.link {
            Link::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Link::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
