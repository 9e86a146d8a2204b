//! Connections that arrive at a listener in the cell. Where a connection wanted to go is the
//! address that it arrived at: every address is local in there.

use super::call::{Call, Destination};
use super::converse::{converse, refuse_outright};
use super::{Loopback, accept, proxy, socks};
use skillcell_core::{Adapter, HTTP_PROXY_PORT, Host, Reason, SOCKS_PORT};
use skillcell_policy::Ask;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

pub(crate) async fn serve(call: Arc<Call>, listener: TcpListener) -> io::Result<()> {
    loop {
        // Bounded over all doors: a skill can't use up the supervisor's descriptors.
        let slot = call.slots.clone().acquire_owned().await;
        let slot = slot.map_err(io::Error::other)?;
        let (client, _) = accept(&listener).await?;
        let call = Arc::clone(&call);
        tokio::spawn(async move {
            receive(call, client).await;
            drop(slot);
        });
    }
}

/// The host's loopback, where a rule names it. By the name, the server's family is found out here:
/// a client that is connected already would not try the other one.
fn on_the_host(call: &Call, address: IpAddr, port: u16) -> Option<Host> {
    if call.loopback == Loopback::Own {
        return None;
    }
    let hosts = [Some(Host::Addr(address)), Host::parse("localhost").ok()];
    let named = |host: &Host| call.decide(host, Ask::Connect { port }).is_allowed();
    hosts.into_iter().flatten().find(named)
}

async fn receive(call: Arc<Call>, client: TcpStream) {
    // A client that is gone already has nothing to be told.
    let Ok(wanted) = client.local_addr() else {
        return;
    };
    if client.set_nodelay(true).is_err() {
        return;
    }
    let (address, port) = (wanted.ip().to_canonical(), wanted.port());
    if address.is_loopback() {
        if let Some(host) = on_the_host(&call, address, port) {
            let adapter = Adapter::Transparent;
            let to = Destination {
                adapter,
                host,
                port,
            };
            return converse(&call, client, to, Vec::new()).await;
        }
        match port {
            HTTP_PROXY_PORT => proxy::serve(&call, client).await,
            SOCKS_PORT => socks::serve(&call, client).await,
            _ => {
                let host = Host::Addr(address);
                refuse_outright(&call, client, host, port, Reason::HostLoopbackUnreachable).await;
            }
        }
        return;
    }
    let host = match call.names.lookup(address) {
        Some(name) => Host::Name(name),
        None => Host::Addr(address),
    };
    let to = Destination {
        adapter: Adapter::Transparent,
        host,
        port,
    };
    converse(&call, client, to, Vec::new()).await;
}
