//! TCP: with a token always, and with TLS wherever somebody else could listen in.

use super::tls::{self, TlsError, TlsFiles};
use crate::auth::Tokens;
use crate::http::Stream;
use rustix::fd::{AsFd, BorrowedFd};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    #[error("{0} is not a loopback address: what is said there can be read on the way")]
    PlainAbroad(SocketAddr),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("can't listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}

#[derive(Debug)]
pub struct TcpListen {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    pub(crate) tokens: Arc<Tokens>,
}

impl TcpListen {
    pub fn bind(
        address: SocketAddr,
        tokens: Tokens,
        files: Option<&TlsFiles>,
    ) -> Result<TcpListen, TcpError> {
        // An IPv4 address in IPv6 clothes is judged as what it is.
        if !address.ip().to_canonical().is_loopback() && files.is_none() {
            return Err(TcpError::PlainAbroad(address));
        }
        let tls = files.map(tls::config).transpose()?;
        let listener =
            TcpListener::bind(address).map_err(|source| TcpError::Listen { address, source })?;
        listener
            .set_nonblocking(true)
            .map_err(|source| TcpError::Listen { address, source })?;
        Ok(TcpListen {
            listener,
            tls,
            tokens: Arc::new(tokens),
        })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            None => Stream::Tcp(stream),
            Some(config) => {
                let server = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(server, stream)))
            }
        })
    }
}

impl AsFd for TcpListen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
