//! Ways around the door, each named as the claim that it is closed.

mod addresses;
mod evidence;
mod kernel;
mod names;
mod proxies;
mod shapes;

use serde_json::{Value, json};

/// The number of a DNS record type.
const A: u16 = 1;
const TXT: u16 = 16;

/// One request on a connection, with a tag to look for outside.
fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// A handshake for `sni` with whoever is at `to`, and then a request to `host`.
fn over_tls(to: &str, sni: Option<&str>, host: &str, path: &str) -> Value {
    json!({
        "host": to, "port": 443, "sni": sni, "send": [get(host, path)], "expect": "hello from",
    })
}

/// The same without a handshake.
fn over_tcp(to: &str, host: &str, path: &str) -> Value {
    json!({"host": to, "port": 80, "send": [get(host, path)], "expect": "hello from"})
}
