//! Takes TLS apart where a rule restricts requests or a secret is to be put in. The authority is
//! made for one call; its key is never written anywhere.

use super::call::{Call, Destination};
use super::converse::Ended;
use super::http;
use super::meter::Traffic;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use skillcell_core::Host;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Of certificates: longer than a call takes.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
const SKEW: Duration = Duration::from_secs(3600);

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("a certificate for the call can't be made")]
    Certificate(#[from] rcgen::Error),
    #[error("the TLS library refuses the call's certificate")]
    Tls(#[from] rustls::Error),
    #[error("the host's root certificates can't be read, so that no server could be checked")]
    NoRoots,
}

/// A certificate authority that lives as long as one call.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// One key for all the names of the call.
    leaf: KeyPair,
    serial: AtomicU64,
    made: SystemTime,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Authority, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        let made = SystemTime::now();
        valid_from(made, &mut params);
        params.distinguished_name = named("Skillcell authority of one call");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Authority {
            issuer: Issuer::new(params, key),
            leaf: KeyPair::generate()?,
            serial: AtomicU64::new(1),
            made,
            pem,
        })
    }

    fn config_for(&self, host: &Host) -> Result<ServerConfig, AuthorityError> {
        let name = host.to_string();
        let mut params = CertificateParams::new(vec![name.clone()])?;
        valid_from(self.made, &mut params);
        // Made from the key, which is the same for all of them, it would be the same too: there are
        // clients that refuse a second certificate of one issuer and number.
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        params.serial_number = Some(serial.into());
        // A common name has room for 64 characters, and nobody reads it.
        params.distinguished_name = named(name.get(..64).unwrap_or(&name));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.leaf, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// For a call, and for clocks that differ a little.
fn valid_from(made: SystemTime, params: &mut CertificateParams) {
    params.not_before = (made - SKEW).into();
    params.not_after = (made + LIFETIME).into();
}

fn named(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) struct Inspector {
    authority: Authority,
    configs: Mutex<HashMap<Host, Arc<ServerConfig>>>,
    /// Towards servers, checked against the host's roots.
    pub(crate) upstream: Arc<ClientConfig>,
    /// The same without HTTP/2, for upgrades.
    pub(crate) upstream_http1: Arc<ClientConfig>,
}

impl Inspector {
    pub(crate) fn new(authority: Authority) -> Result<Inspector, AuthorityError> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            return Err(AuthorityError::NoRoots);
        }
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let upstream_http1 = Arc::new(config.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Inspector {
            authority,
            configs: Mutex::default(),
            upstream: Arc::new(config),
            upstream_http1,
        })
    }

    /// The certificate, for the cell's trust stores.
    pub(crate) fn certificate_pem(&self) -> &str {
        &self.authority.pem
    }

    fn config_for(&self, host: &Host) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.authority.config_for(host)?);
        configs.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }
}

/// Serves a TLS connection whose ClientHello, in `read`, fits its destination.
pub(crate) async fn serve(
    call: &Arc<Call>,
    inspector: &Inspector,
    client: TcpStream,
    read: Vec<u8>,
    to: &Destination,
    traffic: &Arc<Traffic>,
) -> Ended {
    let Ok(config) = inspector.config_for(&to.host) else {
        return Ended::default(); // the client sees its connection closed
    };
    let accepted = TlsAcceptor::from(config)
        .accept(Rewound::new(read, client))
        .await;
    // A client that doesn't trust the call's authority leaves here; it knows why.
    let Ok(stream) = accepted else {
        return Ended {
            inspected: true,
            ..Ended::default()
        };
    };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    http::serve_inspected(call, stream, http2, to, traffic).await
}

/// A stream with bytes put back in front.
pub(crate) struct Rewound<S> {
    front: Vec<u8>,
    at: usize,
    stream: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(front: Vec<u8>, stream: S) -> Self {
        Rewound {
            front,
            at: 0,
            stream,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = self.front.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..taken]);
        self.at += taken;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
