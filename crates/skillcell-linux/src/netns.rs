//! The cell's network namespace: loopback, and nothing else. Where the plan grants egress, every
//! address is local and a listener waits on each granted port; the supervisor serves them.

use crate::error::{During, LinuxError, Result, Step};
use crate::sys::check;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, listen, recv, send,
    socket_with, sockopt,
};
use skillcell_core::{HTTP_PROXY_PORT, SOCKS_PORT};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Connections that may wait to be accepted; a burst of a few hundred must not be refused.
const BACKLOG: i32 = 1024;

const DNS_PORT: u16 = 53;

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
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, DNS_PORT);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let udp = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).during(Step::Dns)?;
    bind(&udp, &address).during(Step::Dns)?;
    let tcp =
        socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).during(Step::Dns)?;
    // A rule may name port 53 of somebody else: see `listener`.
    sockopt::set_socket_reuseport(&tcp, true).during(Step::Dns)?;
    bind(&tcp, &address).during(Step::Dns)?;
    listen(&tcp, 16).during(Step::Dns)?;
    Ok((udp, tcp))
}

/// One listener for each granted port, on every address, then the two proxies on loopback. A
/// granted port that is a proxy's takes that proxy's place: its listener has loopback too, and the
/// supervisor tells by the address which of the two is meant.
pub(crate) fn doors(ports: &[u16]) -> Result<Vec<OwnedFd>> {
    let mut doors = Vec::with_capacity(ports.len() + 2);
    for port in ports {
        doors.push(listen_everywhere(*port)?);
    }
    for port in [HTTP_PROXY_PORT, SOCKS_PORT] {
        if !ports.contains(&port) {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            doors.push(listener(AddressFamily::INET, address)?);
        }
    }
    Ok(doors)
}

/// How many listeners [`doors`] makes.
pub(crate) fn door_count(ports: &[u16]) -> usize {
    let proxies = [HTTP_PROXY_PORT, SOCKS_PORT];
    ports.len() + proxies.iter().filter(|p| !ports.contains(p)).count()
}

/// Both families in one socket; IPv4 alone on kernels without IPv6.
fn listen_everywhere(port: u16) -> Result<OwnedFd> {
    let both = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0));
    match listener(AddressFamily::INET6, both) {
        Err(error) if error.errno == Errno::AFNOSUPPORT.raw_os_error() => listener(
            AddressFamily::INET,
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ),
        other => other,
    }
}

fn listener(family: AddressFamily, address: SocketAddr) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None).during(Step::Door)?;
    if family == AddressFamily::INET6 {
        sockopt::set_ipv6_v6only(&socket, false).during(Step::Door)?;
    }
    if address.port() == DNS_PORT {
        // Beside the name server's listener, which is on one address and so comes first there. It
        // takes a capability to bind below 1024, so no skill can join the two.
        sockopt::set_socket_reuseport(&socket, true).during(Step::Door)?;
    }
    bind(&socket, &address).during(Step::Door)?;
    listen(&socket, BACKLOG).during(Step::Door)?;
    Ok(socket)
}

/// Makes every address one of the namespace's own, so that a connection to anywhere ends at a
/// listener in here. IPv6 may be off on this host; then nothing can be reached by it at all, which
/// is as strict as it gets.
pub(crate) fn all_addresses_local() -> Result<()> {
    route_local(AddressFamily::INET)?;
    match route_local(AddressFamily::INET6) {
        Ok(()) => Ok(()),
        Err(error) if closed_without(error.errno) => Ok(()),
        Err(error) => Err(error),
    }
}

fn closed_without(errno: i32) -> bool {
    [
        Errno::AFNOSUPPORT,
        Errno::OPNOTSUPP,
        Errno::ACCESS,
        Errno::INVAL,
        Errno::NODEV,
        Errno::NETDOWN,
    ]
    .iter()
    .any(|e| e.raw_os_error() == errno)
}

/// `ip route add local default dev lo`, in the table that is asked first.
fn route_local(family: AddressFamily) -> Result<()> {
    const LOOPBACK_INDEX: u32 = 1; // the first interface of every network namespace
    const NEW_ROUTE: u16 = 24;
    const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;
    const LENGTH: u32 = 16 + 12 + 8;
    const TABLE_LOCAL: u8 = 255;
    const PROTOCOL_BOOT: u8 = 3;
    const SCOPE_HOST: u8 = 254;
    const TYPE_LOCAL: u8 = 2;
    const ATTRIBUTE_OIF: u16 = 4;

    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_ROUTE.to_ne_bytes());
    message.extend(REQUEST_ACK_CREATE.to_ne_bytes());
    message.extend([0; 8]); // sequence and port: there is one question and one answer
    message.extend([family.as_raw() as u8, 0, 0, 0]); // to everywhere, from anywhere
    message.extend([TABLE_LOCAL, PROTOCOL_BOOT, SCOPE_HOST, TYPE_LOCAL]);
    message.extend([0; 4]);
    message.extend(8u16.to_ne_bytes());
    message.extend(ATTRIBUTE_OIF.to_ne_bytes());
    message.extend(LOOPBACK_INDEX.to_ne_bytes());

    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None, // 0: routing
    )
    .during(Step::Route)?;
    send(&socket, &message, SendFlags::empty()).during(Step::Route)?;
    let mut answer = [0u8; 256];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty()).during(Step::Route)?;
    // An error message with number 0 is the acknowledgement.
    let number = answer[..length.min(answer.len())]
        .get(16..20)
        .and_then(|b| b.try_into().ok())
        .map(i32::from_ne_bytes)
        .ok_or_else(|| LinuxError::new(Step::Route, Errno::PROTO))?;
    match number {
        0 => Ok(()),
        n => Err(LinuxError::new(
            Step::Route,
            Errno::from_raw_os_error(n.saturating_neg()),
        )),
    }
}
