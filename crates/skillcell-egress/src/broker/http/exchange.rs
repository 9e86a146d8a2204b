//! One client connection's requests: checked against the destination and the rules, and passed on.

use super::super::call::{Call, Destination, Refused};
use super::super::converse::Ended;
use super::super::hint;
use super::super::journal::Entry;
use super::super::meter::Traffic;
use super::super::secrets::hide;
use super::super::sieve::{self, Sieve};
use super::body::{BoxError, Outgoing};
use super::guarded::Switch;
use super::hop_by_hop::strip;
use super::overrides;
use super::returned::Returned;
use super::split_authority;
use super::upstream::{self, ConnectError, Connector, Offer, Scheme, Upstream};
use super::websocket::{self, Handshake};
use crate::http::HttpFault;
use crate::scan::Hider;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use skillcell_core::{Host, Reason};
use skillcell_policy::{Ask, Decision, NormalPath};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;

type Answer = Response<BoxBody<Bytes, BoxError>>;

pub(super) struct Exchange {
    pub(super) call: Arc<Call>,
    pub(super) to: Destination,
    scheme: Scheme,
    upstream: Upstream,
    /// Its number in the call.
    connection: Option<u64>,
    requests: AtomicU64,
    denied: Mutex<Option<Reason>>,
    tunnels: Mutex<Vec<JoinHandle<()>>>,
}

impl Exchange {
    pub(super) fn new(
        call: &Arc<Call>,
        to: &Destination,
        scheme: Scheme,
        offer: Offer,
        traffic: &Arc<Traffic>,
    ) -> Arc<Exchange> {
        let upstream = upstream::client(Connector {
            call: Arc::clone(call),
            to: to.clone(),
            scheme,
            offer,
            traffic: Arc::clone(traffic),
        });
        Arc::new(Exchange {
            call: Arc::clone(call),
            to: to.clone(),
            scheme,
            upstream,
            connection: traffic.connection,
            requests: AtomicU64::new(0),
            denied: Mutex::new(None),
            tunnels: Mutex::default(),
        })
    }

    pub(super) fn ended(&self, inspected: bool) -> Ended {
        Ended {
            address: None,
            inspected,
            requests: self.requests.load(Ordering::Relaxed),
            denied: *self.denied.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits for what was upgraded on this connection.
    pub(super) async fn tunnels_done(&self) {
        let tunnels =
            std::mem::take(&mut *self.tunnels.lock().unwrap_or_else(PoisonError::into_inner));
        for tunnel in tunnels {
            // One that was cut has been recorded where it was cut.
            drop(tunnel.await);
        }
    }

    pub(super) fn malformed(&self, fault: HttpFault) {
        let hint = format!("{fault}; no policy allows a request that can be read in two ways");
        self.noted(&self.call.refuse(&self.to, Reason::HttpMalformed, hint));
    }

    pub(super) fn leaked(&self) -> Refused {
        let refused = self.call.deny(&self.to, Reason::SecretLeak, None);
        self.noted(&refused);
        refused
    }

    fn noted(&self, refused: &Refused) {
        *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused.reason);
    }

    fn refuse(&self, reason: Reason, hint: Option<String>) -> Refused {
        let refused = match hint {
            Some(hint) => self.call.refuse(&self.to, reason, hint),
            None => self.call.deny(&self.to, reason, None),
        };
        self.noted(&refused);
        refused
    }

    /// Always an answer: the server's, or why there is none.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        switch: Option<Switch>,
    ) -> Answer {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match self.recorded(&request) {
            Ok(path) => self.forward(request, path, switch).await,
            Err(refused) => told(StatusCode::FORBIDDEN, Some(refused.reason), &refused.words),
        }
    }

    /// As `checked`, with its entry in the record.
    fn recorded(&self, request: &Request<Incoming>) -> Result<String, Refused> {
        let checked = self.checked(request);
        let entry = Entry::Request {
            connection: self.connection,
            host: self.to.host.to_string(),
            port: self.to.port,
            method: request.method().as_str(),
            path: request.uri().path(),
            denied: checked.as_ref().err().map(|refused| refused.reason),
        };
        match self.call.ledger.write(&entry) {
            Ok(()) => checked,
            Err(_) => Err(self.call.unrecorded(&self.to)),
        }
    }

    /// The path and query to send, if the request may be sent at all.
    fn checked(&self, request: &Request<Incoming>) -> Result<String, Refused> {
        self.call.meter.request().map_err(|spent| {
            let refused = self.call.deny_spent(&self.to, spent);
            self.noted(&refused);
            refused
        })?;
        if request.method() == Method::CONNECT {
            return Err(self.refuse(Reason::ProtocolNotAllowed, None));
        }
        if !self.is_for_this_host(request) {
            return Err(self.refuse(Reason::HttpHostMismatch, None));
        }
        let secrets = &self.call.secrets;
        if secrets.clean(request.method().as_str().as_bytes()).is_err() {
            return Err(self.leaked());
        }
        if websocket::is_asked_for(request.headers())
            && !self.call.secrets.all_bound_to(&self.to.host)
        {
            let hint = "in a call with secrets a WebSocket goes only to hosts that they are bound to: its frames can't be searched for them";
            return Err(self.refuse(Reason::ProtocolNotAllowed, Some(hint.to_owned())));
        }
        let path = match request.uri().path() {
            "" => "/",
            path => path,
        };
        // Where any request is allowed nobody matches a path, and it goes on as it was written.
        let path = match self
            .call
            .decide(&self.to.host, Ask::Connect { port: self.to.port })
        {
            Decision::Allow { inspect: false, .. } => path.to_owned(),
            _ => self.restricted(request, path)?.as_str().to_owned(),
        };
        secrets
            .target(self.trusted(), &path, request.uri().query())
            .map_err(|_| self.leaked())
    }

    /// The path of a request that is allowed where not all are.
    fn restricted(&self, request: &Request<Incoming>, path: &str) -> Result<NormalPath, Refused> {
        // `OPTIONS *` has no path that a rule could name.
        let path = NormalPath::parse(path).map_err(|error| {
            self.refuse(
                Reason::HttpMalformed,
                Some(format!("the path has two readings: {error}")),
            )
        })?;
        if overrides::any(request) {
            let hint = "a header or parameter that changes the method or the path is not allowed where requests are restricted";
            return Err(self.refuse(Reason::HttpRequestNotAllowed, Some(hint.to_owned())));
        }
        let ask = Ask::Request {
            port: self.to.port,
            method: request.method().as_str(),
            path: &path,
        };
        if let Decision::Deny { reason, rule } = self.call.decide(&self.to.host, ask) {
            let hint = match reason {
                Reason::HttpRequestNotAllowed => hint::request_line(
                    &self.to.host,
                    self.to.port,
                    request.method().as_str(),
                    path.as_str(),
                ),
                _ => self
                    .call
                    .hint(reason, &self.to.host, Some(self.to.port), rule.as_deref()),
            };
            return Err(self.refuse(reason, Some(hint)));
        }
        Ok(path)
    }

    /// Every place that names a host names the one that was connected to.
    fn is_for_this_host(&self, request: &Request<Incoming>) -> bool {
        let same = |authority: &str| {
            split_authority(authority, Some(self.scheme.port()))
                .is_some_and(|(host, port)| self.is_host(&host) && port == self.to.port)
        };
        let mut named = false;
        if let Some(authority) = request.uri().authority() {
            named = true;
            if !same(authority.as_str()) {
                return false;
            }
        }
        if let Some(scheme) = request.uri().scheme_str()
            && scheme != self.scheme.as_str()
        {
            return false;
        }
        for value in request.headers().get_all(header::HOST) {
            named = true;
            if !value.to_str().is_ok_and(same) {
                return false;
            }
        }
        named
    }

    /// Whom a secret may be told: in the clear it would be told to everybody on the way.
    fn trusted(&self) -> Option<&Host> {
        (self.scheme == Scheme::Https).then_some(&self.to.host)
    }

    /// To an address any name may be said: there is none to hold it against.
    fn is_host(&self, said: &Host) -> bool {
        match &self.to.host {
            Host::Addr(_) => true,
            name => said == name,
        }
    }

    async fn forward(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        path_and_query: String,
        switch: Option<Switch>,
    ) -> Answer {
        // Half a request for a WebSocket is none: it goes on without its wish.
        let handshake = Handshake::of(request.method(), request.headers());
        let upgrade = switch.zip(handshake);
        let client_side = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
        let method = request.method().clone();
        let (mut parts, body) = request.into_parts();
        // To an address the client's own words for the host go on; a name is written anew.
        let said = match &self.to.host {
            Host::Addr(_) => parts.headers.get(header::HOST).cloned(),
            Host::Name(_) => None,
        };
        strip(&mut parts.headers);
        parts.headers.remove(header::HOST);
        let secrets = &self.call.secrets;
        let said_clean = said
            .as_ref()
            .is_none_or(|host| secrets.clean(host.as_bytes()).is_ok());
        let put = secrets.headers(self.trusted(), &mut parts.headers);
        if !said_clean || put.is_err() {
            let refused = self.leaked();
            return told(StatusCode::FORBIDDEN, Some(refused.reason), &refused.words);
        }
        if let Some(said) = said {
            parts.headers.insert(header::HOST, said);
        }
        // Of whom was told a secret, what comes back is read: it must be readable.
        let hider = secrets.hider(&self.to.host);
        if hider.is_some() {
            let identity = HeaderValue::from_static("identity");
            parts.headers.insert(header::ACCEPT_ENCODING, identity);
        }
        if upgrade.is_some() {
            parts
                .headers
                .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            parts
                .headers
                .insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        let Ok(uri) = self.uri(&path_and_query) else {
            return told(
                StatusCode::BAD_REQUEST,
                None,
                "skillcell: the request's address can't be written",
            );
        };
        parts.uri = uri;
        parts.version = Version::HTTP_11;
        let request = Request::from_parts(parts, Outgoing::new(body, Arc::clone(&self)));
        let mut response = match self.upstream.request(request).await {
            Ok(response) => response,
            Err(error) => return self.unreachable(&error),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (Some((switch, handshake)), Some(client_side)) = (upgrade, client_side) else {
                return told(
                    StatusCode::BAD_GATEWAY,
                    None,
                    "skillcell: the server changed the protocol unasked",
                );
            };
            if !handshake.is_accepted(response.headers()) {
                let hint = "the server's answer doesn't fit the key of the WebSocket: it changes to something else, which no rule allows";
                let refused = self.refuse(Reason::ProtocolNotAllowed, Some(hint.to_owned()));
                return told(
                    StatusCode::BAD_GATEWAY,
                    Some(refused.reason),
                    &refused.words,
                );
            }
            switch.turn();
            let server_side = hyper::upgrade::on(&mut response);
            let tunnel = tokio::spawn(Arc::clone(&self).tunnel(client_side, server_side));
            self.tunnels
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(tunnel);
        } else {
            strip(response.headers_mut());
        }
        *response.version_mut() = Version::HTTP_11;
        match hider {
            Some(hider) => self.returned(response, hider, &method),
            None => response.map(|body| body.map_err(Into::into).boxed()),
        }
    }

    /// An answer in which no secret stands any more.
    fn returned(
        self: Arc<Self>,
        mut response: Response<Incoming>,
        hider: Hider,
        method: &Method,
    ) -> Answer {
        response.extensions_mut().remove::<ReasonPhrase>();
        let headers = response.headers_mut();
        if hide(&hider, headers).is_err() {
            let refused = self.leaked();
            return told(
                StatusCode::BAD_GATEWAY,
                Some(refused.reason),
                &refused.words,
            );
        }
        // A server that packs it all the same has its way; a secret in there is not found.
        let packed = headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        if packed || response.body().is_end_stream() {
            return response.map(|body| body.map_err(Into::into).boxed());
        }
        // A placeholder is seldom as long as its secret.
        if method != Method::HEAD {
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        response.map(|body| Returned::new(body, hider, self).boxed())
    }

    fn uri(&self, path_and_query: &str) -> Result<Uri, hyper::http::Error> {
        let host = match &self.to.host {
            Host::Addr(std::net::IpAddr::V6(v6)) => format!("[{v6}]"),
            host => host.to_string(),
        };
        let authority = if self.to.port == self.scheme.port() {
            host
        } else {
            format!("{host}:{}", self.to.port)
        };
        Uri::builder()
            .scheme(self.scheme.as_str())
            .authority(authority)
            .path_and_query(path_and_query)
            .build()
    }

    fn unreachable(&self, error: &hyper_util::client::legacy::Error) -> Answer {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = source {
            match inner.downcast_ref::<ConnectError>() {
                Some(ConnectError::Dial(dial)) => {
                    if let Some(reason) = dial.reason() {
                        *self.denied.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                        return told(StatusCode::FORBIDDEN, Some(reason), &dial.words(&self.to));
                    }
                    return told(StatusCode::BAD_GATEWAY, None, &dial.words(&self.to));
                }
                Some(ConnectError::Tls(why)) => {
                    let hint = format!("{why}; set SSL_CERT_FILE for skillcell to add a root");
                    let refused = self.refuse(Reason::UpstreamTls, Some(hint));
                    return told(
                        StatusCode::BAD_GATEWAY,
                        Some(refused.reason),
                        &refused.words,
                    );
                }
                None => source = inner.source(),
            }
        }
        let words = match *self.denied.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(reason) => format!("skillcell: {}: {reason}", self.to.host),
            None => format!("skillcell: {} didn't answer", self.to.host),
        };
        told(StatusCode::BAD_GATEWAY, None, &words)
    }

    /// Bytes both ways after an upgrade, with an eye on secrets.
    async fn tunnel(
        self: Arc<Self>,
        client: hyper::upgrade::OnUpgrade,
        server: hyper::upgrade::OnUpgrade,
    ) {
        let (Ok(client), Ok(server)) = (client.await, server.await) else {
            return;
        };
        let (mut from_client, mut to_client) = tokio::io::split(TokioIo::new(client));
        let (mut from_server, mut to_server) = tokio::io::split(TokioIo::new(server));
        let out = async {
            let mut sieve = Sieve::new(self.call.secrets.scanner());
            let mut buffer = vec![0; 16 << 10];
            loop {
                let length = if sieve.waits() {
                    match timeout(sieve::IDLE, from_client.read(&mut buffer)).await {
                        Ok(length) => length?,
                        Err(_) => {
                            to_server.write_all(&sieve.idle()).await?;
                            from_client.read(&mut buffer).await?
                        }
                    }
                } else {
                    from_client.read(&mut buffer).await?
                };
                if length == 0 {
                    to_server.write_all(&sieve.finish()).await?;
                    return to_server.shutdown().await;
                }
                let Ok(ready) = sieve.push(&buffer[..length]) else {
                    self.leaked();
                    return Err(std::io::ErrorKind::PermissionDenied.into());
                };
                to_server.write_all(&ready).await?;
            }
        };
        let into = async {
            tokio::io::copy(&mut from_server, &mut to_client).await?;
            to_client.shutdown().await
        };
        // Whichever breaks first ends both; the two ends have seen it.
        drop(tokio::try_join!(out, into));
    }
}

fn told(status: StatusCode, reason: Option<Reason>, words: &str) -> Answer {
    let body = Full::new(Bytes::from(format!("{words}\n")))
        .map_err(|never| match never {})
        .boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if let Some(reason) = reason {
        headers.insert(
            "x-skillcell-denied",
            HeaderValue::from_static(reason.code()),
        );
    }
    response
}
