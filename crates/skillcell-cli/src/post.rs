//! Sends JSON to an HTTP server that the user named. Nothing is followed and no proxy is asked: the
//! record goes where the command line says, or nowhere.

use bytes::Bytes;
use hickory_resolver::TokioResolver;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const CONNECT: Duration = Duration::from_secs(10);
const EXCHANGE: Duration = Duration::from_secs(60);
/// Attempts where the server asks for another one.
const ATTEMPTS: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// More of an answer than this isn't read.
const MAX_ANSWER: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    #[error(
        "`{0}` is no endpoint: use http://HOST:PORT or https://HOST, without user, query or fragment"
    )]
    Url(String),
    #[error("OTEL_EXPORTER_OTLP_HEADERS is not name=value, separated by commas")]
    Headers,
    #[error("can't begin: {0}")]
    Runtime(std::io::Error),
    #[error("TLS can't be used: {0}")]
    Tls(String),
    #[error("{0}: {1}")]
    Connect(String, std::io::Error),
    #[error("{0}: no answer in time")]
    Timeout(String),
    #[error("{0}: {1}")]
    Http(String, hyper::Error),
    #[error("{url}: the server answers {status}: {body}")]
    Answer {
        url: String,
        status: StatusCode,
        body: String,
    },
}

impl PostError {
    /// The command line or the environment is wrong, not the network.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, PostError::Url(_) | PostError::Headers)
    }
}

pub(crate) struct Client {
    runtime: tokio::runtime::Runtime,
    url: String,
    host: String,
    port: u16,
    authority: HeaderValue,
    path: String,
    headers: HeaderMap,
    tls: Option<TlsConnector>,
}

impl Client {
    /// For `endpoint` and the path of a signal, such as `/v1/traces`.
    pub(crate) fn new(endpoint: &str, signal: &str, headers: &str) -> Result<Client, PostError> {
        let bad = || PostError::Url(endpoint.to_owned());
        let uri: Uri = endpoint.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        if authority.as_str().contains('@') || uri.query().is_some() || endpoint.contains('#') {
            return Err(bad());
        }
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad()),
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let port = match (authority.port_u16(), secure) {
            (Some(port), _) => port,
            (None, true) => 443,
            (None, false) => 80,
        };
        let mut path = uri.path().trim_end_matches('/').to_owned();
        if !path.ends_with(signal) {
            path.push_str(signal);
        }
        let scheme = if secure { "https" } else { "http" };
        Ok(Client {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(PostError::Runtime)?,
            url: format!("{scheme}://{authority}{path}"),
            host: host.to_owned(),
            port,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| bad())?,
            path,
            headers: parse_headers(headers).ok_or(PostError::Headers)?,
            tls: secure.then(tls).transpose()?,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The body of the answer. Asks again where the server says that it can't just now.
    pub(crate) fn post(&self, body: Vec<u8>) -> Result<Vec<u8>, PostError> {
        let body = Bytes::from(body);
        self.runtime.block_on(async {
            let mut attempt = 1;
            loop {
                let (status, answer, wait) = self.attempt(body.clone()).await?;
                if status.is_success() {
                    return Ok(answer);
                }
                if !matches!(status.as_u16(), 429 | 502 | 503 | 504) || attempt == ATTEMPTS {
                    let text = String::from_utf8_lossy(&answer);
                    return Err(PostError::Answer {
                        url: self.url.clone(),
                        status,
                        body: text.chars().take(300).collect(),
                    });
                }
                let backoff = Duration::from_millis(500 << attempt);
                tokio::time::sleep(wait.unwrap_or(backoff).min(LONGEST_WAIT)).await;
                attempt += 1;
            }
        })
    }

    async fn attempt(
        &self,
        body: Bytes,
    ) -> Result<(StatusCode, Vec<u8>, Option<Duration>), PostError> {
        let late = |_| PostError::Timeout(self.url.clone());
        let failed = |error| PostError::Connect(self.url.clone(), error);
        let stream = async {
            let tcp = TcpStream::connect(&*self.addresses().await?).await?;
            tcp.set_nodelay(true)?;
            Ok(match &self.tls {
                None => Stream::Plain(tcp),
                Some(tls) => {
                    let name =
                        ServerName::try_from(self.host.clone()).map_err(std::io::Error::other)?;
                    Stream::Tls(Box::new(tls.connect(name, tcp).await?))
                }
            })
        };
        let stream = tokio::time::timeout(CONNECT, stream)
            .await
            .map_err(late)?
            .map_err(failed)?;
        let exchange = async {
            match stream {
                Stream::Plain(stream) => self.exchange(stream, body).await,
                Stream::Tls(stream) => self.exchange(*stream, body).await,
            }
        };
        tokio::time::timeout(EXCHANGE, exchange)
            .await
            .map_err(late)?
            .map_err(|error| PostError::Http(self.url.clone(), error))
    }

    /// By the host's resolver, asked without the C library: a static binary has none to ask.
    async fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let resolver = TokioResolver::builder_tokio()
            .and_then(|builder| builder.build())
            .map_err(std::io::Error::other)?;
        let found = resolver.lookup_ip(self.host.as_str()).await;
        let found = found.map_err(std::io::Error::other)?;
        Ok(found
            .iter()
            .map(|address| SocketAddr::new(address, self.port))
            .collect())
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        body: Bytes,
    ) -> Result<(StatusCode, Vec<u8>, Option<Duration>), hyper::Error> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(HOST, self.authority.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("skillcell/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let answer = async {
            let response = sender.send_request(request).await?;
            let (parts, body) = response.into_parts();
            let wait = parts
                .headers
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs);
            // An answer that is too long says nothing that is needed.
            let body = match Limited::new(body, MAX_ANSWER).collect().await {
                Ok(body) => body.to_bytes().to_vec(),
                Err(_) => Vec::new(),
            };
            Ok((parts.status, body, wait))
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            ended = connection => {
                ended?;
                answer.await
            }
        }
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Trusts what the host trusts.
fn tls() -> Result<TlsConnector, PostError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(PostError::Tls(
            "this host has no root certificates (install ca-certificates, or set SSL_CERT_FILE)"
                .to_owned(),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| PostError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// `name=value,…`, values percent-encoded, as OpenTelemetry has it.
fn parse_headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let mut value = HeaderValue::from_bytes(&decode(value.trim())?).ok()?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Some(headers)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_get_the_path_of_their_signal() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("http://host/otlp/", "http://host/otlp/v1/traces"),
            ("http://host/v1/traces", "http://host/v1/traces"),
        ] {
            let client = Client::new(endpoint, "/v1/traces", "").expect("an endpoint");
            assert_eq!(client.url(), url);
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for bad in [
            "",
            "host:4318",
            "ftp://host",
            "http://user:pw@host",
            "http://host/?q=1",
            "http://host/#x",
            "/v1/traces",
        ] {
            assert!(
                matches!(Client::new(bad, "/v1/traces", ""), Err(PostError::Url(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn headers_are_decoded_and_never_printed() {
        let headers = parse_headers("api-key=s%3Dcret, x-team = a").expect("headers");
        assert_eq!(headers["api-key"], "s=cret");
        assert_eq!(headers["x-team"], "a");
        assert!(!format!("{headers:?}").contains("cret"));
        for bad in ["nothing", "a b=c", "a=%zz", "a=%0a", "a=%2"] {
            assert!(parse_headers(bad).is_none(), "{bad}");
        }
    }
}
