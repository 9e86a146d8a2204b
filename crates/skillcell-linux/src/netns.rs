//! The cell's network namespace: loopback, and nothing else.

use crate::error::{During, Result, Step};
use crate::sys::check;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Brings `lo` up in the current network namespace.
pub(crate) fn loopback_up() -> Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .during(Step::Loopback)?;
    // SAFETY: ifreq is plain data for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which lives across the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) }.into())
        .during(Step::Loopback)?;
    Ok(())
}

/// The two sockets on 127.0.0.1:53 that the supervisor serves from outside.
pub(crate) fn dns_sockets() -> Result<(OwnedFd, OwnedFd)> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let udp = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).during(Step::Dns)?;
    bind(&udp, &address).during(Step::Dns)?;
    let tcp =
        socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).during(Step::Dns)?;
    bind(&tcp, &address).during(Step::Dns)?;
    listen(&tcp, 16).during(Step::Dns)?;
    Ok((udp, tcp))
}
