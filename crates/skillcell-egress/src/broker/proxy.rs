//! An HTTP proxy for clients that are configured for one: CONNECT, and requests in absolute form.

use super::call::{Call, Destination, Refused};
use super::converse::{converse, record_denied, reset};
use super::http;
use crate::http::{Head, HeadReader, HttpFault};
use skillcell_core::{Adapter, HTTP_PROXY_PORT, Host, Reason};
use skillcell_policy::{Ask, Decision};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn serve(call: &Arc<Call>, mut client: TcpStream) {
    let (head, mut buffer) = match timeout(PATIENCE, read_head(&mut client)).await {
        Ok(Ok(Some(read))) => read,
        Ok(Err(fault)) => {
            let hint = format!("{fault}; no policy allows a request that can be read in two ways");
            let shown = format!("127.0.0.1:{HTTP_PROXY_PORT}");
            call.deny_as_shown(Adapter::HttpForward, &shown, Reason::HttpMalformed, hint);
            client.write_all(http::BAD_REQUEST).await.unwrap_or(());
            return;
        }
        // It left, or said nothing in time, and so wanted nothing.
        Ok(Ok(None)) | Err(_) => {
            client.write_all(http::BAD_REQUEST).await.unwrap_or(());
            reset(&client);
            return;
        }
    };
    let connect = head.method == "CONNECT";
    let adapter = if connect {
        Adapter::HttpConnect
    } else {
        Adapter::HttpForward
    };
    let Some((host, port)) = destination(&head.target, connect) else {
        let hint = "the proxy takes CONNECT host:port, or a whole http:// address".to_owned();
        call.deny_as_shown(adapter, &head.target, Reason::HttpMalformed, hint);
        client.write_all(http::BAD_REQUEST).await.unwrap_or(());
        return;
    };
    let host = match &host {
        Host::Addr(address) => call.names.lookup(*address).map_or(host, Host::Name),
        Host::Name(_) => host,
    };
    let to = Destination {
        adapter,
        host,
        port,
    };
    if let Decision::Deny { reason, rule } = call.decide(&to.host, Ask::Connect { port }) {
        let refused: Refused = call.deny_whole(&to, reason, rule.as_deref());
        record_denied(call, &to, &refused);
        client
            .write_all(&http::plain_denial(&refused))
            .await
            .unwrap_or(());
        return;
    }
    if connect {
        let rest = buffer.split_off(head.length.min(buffer.len()));
        let answer = b"HTTP/1.1 200 Connection established\r\n\r\n";
        if client.write_all(answer).await.is_ok() {
            converse(call, client, to, rest).await;
        }
    } else {
        // The head goes on as it came: the guard reads it again, and each one after it.
        converse(call, client, to, buffer).await;
    }
}

/// `None` when the client leaves before its head is complete.
async fn read_head(client: &mut TcpStream) -> Result<Option<(Head, Vec<u8>)>, HttpFault> {
    let mut buffer = Vec::with_capacity(4096);
    let mut reader = HeadReader::default();
    loop {
        let seen = buffer.len();
        if !matches!(client.read_buf(&mut buffer).await, Ok(n) if n > 0) {
            return Ok(None);
        }
        // Only what is new: a head may come in crumbs.
        let mut fresh = buffer.get(seen..).unwrap_or_default();
        if let Some(head) = reader.feed(&mut fresh)? {
            return Ok(Some((head, buffer)));
        }
    }
}

/// The host and port of `host:port`, or of an `http://` address.
fn destination(target: &str, connect: bool) -> Option<(Host, u16)> {
    let (authority, default) = if connect {
        (target, None)
    } else {
        let scheme = target.get(..7)?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return None;
        }
        let rest = &target[7..];
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        (&rest[..end], Some(80))
    };
    http::split_authority(authority, default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read_in_one_way_only() {
        let host = |text: &str| Host::parse(text).expect("a host");
        assert_eq!(
            destination("api.example.com:443", true),
            Some((host("api.example.com"), 443))
        );
        assert_eq!(
            destination("HTTP://API.example.com/x?y", false),
            Some((host("api.example.com"), 80))
        );
        for (bad, connect) in [
            ("api.example.com", true),
            ("user@api.example.com:443", true),
            ("api.example.com:0443x", true),
            ("api.example.com:99999", true),
            ("https://api.example.com/", false),
            ("http://a@api.example.com/", false),
            ("/hello", false),
        ] {
            assert_eq!(destination(bad, connect), None, "{bad}");
        }
    }
}
