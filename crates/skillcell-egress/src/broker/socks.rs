//! SOCKS5 for clients that are configured for it, with names resolved here.

use super::call::{Call, Destination};
use super::converse::{converse, record_denied, reset};
use crate::socks5::{Handshake, Reply, Step, Target};
use skillcell_core::{Adapter, Host, Reason, SOCKS_PORT};
use skillcell_policy::{Ask, Decision};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn serve(call: &Arc<Call>, mut client: TcpStream) {
    let Ok(Some((host, port, rest))) = timeout(PATIENCE, negotiate(call, &mut client)).await else {
        reset(&client);
        return;
    };
    let to = Destination {
        adapter: Adapter::Socks5,
        host,
        port,
    };
    // Told in its own words, before it believes that it is connected.
    if let Decision::Deny { reason, rule } = call.decide(&to.host, Ask::Connect { port }) {
        let refused = call.deny_whole(&to, reason, rule.as_deref());
        record_denied(call, &to, &refused);
        client
            .write_all(&Reply::NotAllowed.bytes())
            .await
            .unwrap_or(());
        return;
    }
    if client.write_all(&Reply::Succeeded.bytes()).await.is_ok() {
        converse(call, client, to, rest).await;
    }
}

/// The destination, and what the client sent after it.
async fn negotiate(call: &Call, client: &mut TcpStream) -> Option<(Host, u16, Vec<u8>)> {
    let mut handshake = Handshake::new();
    let mut buffer = Vec::new();
    loop {
        if client.read_buf(&mut buffer).await.ok()? == 0 {
            return None;
        }
        let mut reply = Vec::new();
        let (used, step) = handshake.feed(&buffer, &mut reply);
        let rest = buffer.split_off(used.min(buffer.len()));
        buffer.clear();
        if !reply.is_empty() {
            client.write_all(&reply).await.ok()?;
        }
        let (target, port) = match step {
            Step::NeedMore => continue,
            Step::Connect { target, port } => (target, port),
            Step::Failed(why) => {
                let shown = format!("127.0.0.1:{SOCKS_PORT}");
                let hint = format!("{why}; no policy allows more than SOCKS5 connections");
                call.deny_as_shown(Adapter::Socks5, &shown, Reason::ProtocolNotAllowed, hint);
                return None;
            }
        };
        let host = match target {
            Target::Address(address) => Ok(by_address(call, address)),
            Target::Name(text) => Host::parse(&text).map_err(|_| text),
        };
        return match host {
            Ok(host) => Some((host, port, rest)),
            Err(text) => {
                let hint = "this is no host name that a rule could allow".to_owned();
                call.deny_as_shown(Adapter::Socks5, &text, Reason::HostNotAllowed, hint);
                client.write_all(&Reply::NotAllowed.bytes()).await.ok()?;
                None
            }
        };
    }
}

/// A client that resolved by itself gives the address that stands for a name.
fn by_address(call: &Call, address: std::net::IpAddr) -> Host {
    let address = address.to_canonical();
    match call.names.lookup(address) {
        Some(name) => Host::Name(name),
        None => Host::Addr(address),
    }
}
