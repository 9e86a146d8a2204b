//! The handshake of a WebSocket (RFC 6455), after which bytes pass unread. So it must be one: the
//! server has to show that it understood what was asked, and not only to say 101, which anybody can
//! be made to say who repeats what he is told.

use super::super::base64;
use hyper::Method;
use hyper::header::{self, HeaderMap};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_LENGTH: usize = 16;

/// Whether a client asks for one, rightly or not.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    headers
        .get(header::UPGRADE)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// What a server must answer.
#[derive(Debug)]
pub(super) struct Handshake {
    accept: String,
}

impl Handshake {
    /// `None` for what isn't a complete request for a WebSocket.
    pub(super) fn of(method: &Method, headers: &HeaderMap) -> Option<Handshake> {
        if method != Method::GET || !is_asked_for(headers) {
            return None;
        }
        let key = only(headers, &header::SEC_WEBSOCKET_KEY)?;
        if base64::decode(key)?.len() != KEY_LENGTH {
            return None;
        }
        Some(Handshake {
            accept: accept(key),
        })
    }

    /// Whether this is the answer of a server that agreed.
    pub(super) fn is_accepted(&self, headers: &HeaderMap) -> bool {
        is_asked_for(headers)
            && only(headers, &header::SEC_WEBSOCKET_ACCEPT) == Some(self.accept.as_str())
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn accept(key: &str) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    base64::encode(hash.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().expect("a value"));
        }
        map
    }

    /// The example of RFC 6455.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    #[test]
    fn only_a_server_that_understood_the_key_is_believed() {
        let asked = headers(&[("upgrade", "WebSocket"), ("sec-websocket-key", KEY)]);
        let handshake = Handshake::of(&Method::GET, &asked).expect("a handshake");
        let right = [("upgrade", "websocket"), ("sec-websocket-accept", ACCEPT)];
        assert!(handshake.is_accepted(&headers(&right)));
        for wrong in [
            &right[..1],
            &right[1..],
            &[right[0], ("sec-websocket-accept", KEY)],
            &[right[0], right[1], right[1]],
            &[("upgrade", "h2c"), right[1]],
        ] {
            assert!(!handshake.is_accepted(&headers(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn half_a_request_is_none() {
        let whole = [("upgrade", "websocket"), ("sec-websocket-key", KEY)];
        assert!(Handshake::of(&Method::POST, &headers(&whole)).is_none());
        for half in [
            &whole[..1],
            &whole[1..],
            &[whole[0], ("sec-websocket-key", "c2hvcnQ=")],
            &[whole[0], whole[1], whole[1]],
        ] {
            assert!(Handshake::of(&Method::GET, &headers(half)).is_none());
        }
    }
}
