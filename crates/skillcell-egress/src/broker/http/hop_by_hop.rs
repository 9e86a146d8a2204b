//! What is said between two neighbours, and not passed on.

use hyper::header::{self, HeaderMap, HeaderValue};

/// Headers that belong to one connection only. `Trailer` doesn't: it says what stands behind the
/// body, which is passed on with it.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Takes out what belongs to one connection, and what `Connection` says belongs to it.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|token| token.trim().to_ascii_lowercase())
        .collect();
    let trailers = headers
        .get(header::TE)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"trailers"));
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in named {
        // What a request needs to be read rightly can't be struck out by its sender.
        if !matches!(
            name.as_str(),
            "host" | "content-length" | "authorization" | "cookie"
        ) {
            headers.remove(name);
        }
    }
    if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}
