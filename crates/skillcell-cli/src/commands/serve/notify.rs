//! Tells a service manager how far the daemon is, where it asked for that.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Nobody is told where nobody asked; a manager that can't be told goes by its own clock.
pub(super) fn say(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let address = match path.to_str().and_then(|p| p.strip_prefix('@')) {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let sent = address.and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(state.as_bytes(), &address)
    });
    if let Err(error) = sent {
        crate::output::warning(&format!("the service manager can't be told: {error}"));
    }
}
