//! What the cell tried and was denied: notifications of the filter, and questions to the DNS stub.
//! Nothing here decides what the kernel enforces; it records, and answers with an errno.

use crate::door::View;
use crate::paths_inside::{Target, Writes};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use skillcell_backend::Running;
use skillcell_core::{DenialKind, Denials, Host, Reason};
use skillcell_egress::hint;
use skillcell_linux::procfs;
use skillcell_linux::seccomp::{Answer, Listener, Notification, syscall_name};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// What kind of cell it is, as far as denials go.
#[derive(Debug, Clone)]
pub(crate) enum World {
    Namespaces,
    /// Writable folders of the host.
    Bare {
        writable: Vec<PathBuf>,
    },
}

pub(crate) struct Notices {
    world: World,
    /// Where the plan grants egress: what the broker serves.
    door: Option<View>,
    denials: Denials,
    listener: Option<Listener>,
    dns: Option<(OwnedFd, OwnedFd)>,
    /// DNS over TCP: clients that have connected and not asked yet.
    clients: Vec<OwnedFd>,
    /// Init and the most tasks below it, where the supervisor counts them.
    fork_limit: Option<(u32, u64)>,
    forks_denied: u64,
}

const MAX_CLIENTS: usize = 16;
const DNS_PORT: u16 = 53;
const NO_NETWORK: &str =
    "no policy gives a cell sockets of this kind; the process level has none at all";

impl Notices {
    pub(crate) fn new(world: World, door: Option<View>, running: &mut Running, tasks: u32) -> Self {
        let listener = running.cell.listener.take();
        if let Some(listener) = &listener {
            listener.prefer_sync_wakeup();
        }
        // The filter reports forks exactly where no cgroup counts them.
        let counted = running.cgroup_usage().is_some_and(|u| u.counts_forks);
        Notices {
            world,
            door,
            denials: Denials::default(),
            listener,
            dns: running.cell.dns.take(),
            clients: Vec::new(),
            fork_limit: (!counted).then_some((running.cell.pid, tasks.into())),
            forks_denied: 0,
        }
    }

    pub(crate) fn push<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if let Some(listener) = &self.listener {
            fds.push(PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN));
        }
        if let Some((udp, tcp)) = &self.dns {
            fds.push(PollFd::new(udp, PollFlags::IN));
            fds.push(PollFd::new(tcp, PollFlags::IN));
        }
        fds.extend(self.clients.iter().map(|c| PollFd::new(c, PollFlags::IN)));
    }

    /// Serves what is ready, in the order of `push`.
    pub(crate) fn serve(&mut self, ready: &[bool]) -> rustix::io::Result<()> {
        let mut ready = ready.iter().copied();
        if self.listener.is_some() && ready.next() == Some(true) {
            self.serve_call()?;
        }
        if self.dns.is_some() {
            let (udp, tcp) = (ready.next() == Some(true), ready.next() == Some(true));
            let clients: Vec<bool> = ready.collect();
            self.serve_clients(&clients);
            if udp {
                self.serve_udp();
            }
            if tcp {
                self.accept();
            }
        }
        Ok(())
    }

    pub(crate) fn into_denials(self) -> Denials {
        self.denials
    }

    fn serve_call(&mut self) -> rustix::io::Result<()> {
        let Some(listener) = &self.listener else {
            return Ok(());
        };
        let call = match listener.receive() {
            Ok(Some(call)) => call,
            Ok(None) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        let answer = self.judge(&call);
        match &self.listener {
            Some(listener) => listener.answer(&call, answer),
            None => Ok(()),
        }
    }

    fn judge(&mut self, call: &Notification) -> Answer {
        let name = syscall_name(call.nr);
        match name.as_str() {
            "clone" | "fork" | "vfork" if self.fork_limit.is_some() => self.judge_fork(call, &name),
            "connect" | "sendto" => self.judge_destination(call, &name),
            "socket" | "socketpair" => self.judge_socket(call, &name),
            _ => match Writes::of(&name, &call.args) {
                Some(write) => self.judge_write(call, &write),
                None => self.deny_call(call, &name),
            },
        }
    }

    /// Where no cgroup counts: one more process or thread, if there is room. The flags are a
    /// register's value, so letting the kernel go on does what was looked at.
    fn judge_fork(&mut self, call: &Notification, name: &str) -> Answer {
        const NAMESPACES: u64 = 0x7e02_0080;
        if name == "clone" && call.args[0] & NAMESPACES != 0 {
            return self.deny_call(call, name);
        }
        let Some((root, limit)) = self.fork_limit else {
            return Answer::Continue;
        };
        let tasks: u64 = procfs::descendants(root)
            .iter()
            .map(|p| procfs::threads(*p))
            .sum();
        if tasks < limit {
            return Answer::Continue;
        }
        self.forks_denied += 1;
        Answer::Errno(libc_errno(Errno::AGAIN))
    }

    /// Forks that failed for the limit.
    pub(crate) fn forks_denied(&self) -> u64 {
        self.forks_denied
    }

    fn deny_call(&mut self, call: &Notification, name: &str) -> Answer {
        let target = match name {
            "ioctl" => format!("ioctl {:#x}", call.args[1] as u32),
            "clone" => "clone with new namespaces".into(),
            "prctl" => format!("prctl {}", call.args[0] as i32),
            _ => name.to_owned(),
        };
        self.denials.record(
            DenialKind::Syscall,
            &target,
            Reason::SyscallNotAllowed,
            "no policy allows this system call in a cell",
        );
        match name {
            // As a terminal would answer; programs take it as "not a terminal".
            "ioctl" => Answer::Errno(libc_errno(Errno::NOTTY)),
            // Numbers that this build has no name for are newer than it: programs fall back.
            _ if name.starts_with("syscall_") => Answer::Errno(libc_errno(Errno::NOSYS)),
            _ => Answer::Errno(libc_errno(Errno::PERM)),
        }
    }

    fn judge_socket(&mut self, call: &Notification, name: &str) -> Answer {
        let (family, kind, protocol) = (
            call.args[0] as u32,
            call.args[1] as u32 & 0xf,
            call.args[2] as u32,
        );
        let family = match family {
            1 => "AF_UNIX".to_owned(),
            2 => "AF_INET".to_owned(),
            10 => "AF_INET6".to_owned(),
            16 => "AF_NETLINK".to_owned(),
            17 => "AF_PACKET".to_owned(),
            38 => "AF_ALG".to_owned(),
            40 => "AF_VSOCK".to_owned(),
            other => format!("family {other}"),
        };
        let kind = match kind {
            1 => "SOCK_STREAM".to_owned(),
            2 => "SOCK_DGRAM".to_owned(),
            3 => "SOCK_RAW".to_owned(),
            other => format!("type {other}"),
        };
        self.denials.record(
            DenialKind::Network,
            &format!("{name}({family}, {kind}, {protocol})"),
            Reason::NetworkNotAllowed,
            NO_NETWORK,
        );
        Answer::Errno(libc_errno(Errno::ACCESS))
    }

    fn judge_destination(&mut self, call: &Notification, name: &str) -> Answer {
        let (address, length) = if name == "connect" {
            (call.args[1], call.args[2])
        } else {
            (call.args[4], call.args[5])
        };
        let bare = matches!(self.world, World::Bare { .. });
        let Some(destination) = self.destination(call, address, length as usize) else {
            if bare {
                self.denials.record(
                    DenialKind::Network,
                    name,
                    Reason::NetworkNotAllowed,
                    NO_NETWORK,
                );
                return Answer::Errno(libc_errno(Errno::ACCESS));
            }
            return Answer::Continue; // a unix socket inside, or an address that the kernel rejects
        };
        if let Some(door) = &self.door
            && let Some(answer) = through(door, name, destination, &mut self.denials)
        {
            return answer;
        }
        if bare || !destination.ip().to_canonical().is_loopback() {
            self.denials.record(
                DenialKind::Network,
                &destination.to_string(),
                Reason::NetworkNotAllowed,
                address_hint(destination),
            );
            return Answer::Errno(libc_errno(if bare {
                Errno::ACCESS
            } else {
                Errno::NETUNREACH
            }));
        }
        if name == "connect"
            && destination.port() != DNS_PORT
            && !listens(call.pid, destination.port())
        {
            self.denials.record(
                DenialKind::Network,
                &destination.to_string(),
                Reason::HostLoopbackUnreachable,
                "loopback is the cell's own and nothing listens there; services of the host are not reachable",
            );
        }
        // The namespace has loopback only, so whatever the address is by now, it stays inside.
        Answer::Continue
    }

    /// The internet address in a sockaddr; for the record only.
    fn destination(&self, call: &Notification, address: u64, length: usize) -> Option<SocketAddr> {
        let bytes = self
            .listener
            .as_ref()?
            .read_bytes(call, address, length.min(28))?;
        let family = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]);
        let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        match family {
            2 => {
                let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
                Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(octets)), port))
            }
            10 => {
                let octets: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
                Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)), port))
            }
            _ => None,
        }
    }

    fn judge_write(&mut self, call: &Notification, write: &Writes) -> Answer {
        for (dir, address) in write.paths() {
            let path = self
                .listener
                .as_ref()
                .and_then(|l| l.read_string(call, address, 4096));
            let Some(path) = path else { continue };
            let target = Target::new(call.pid, dir, &path);
            let denied = match &self.world {
                World::Namespaces => target.is_read_only(write),
                World::Bare { writable } => target.is_outside(writable, write),
            };
            if denied {
                self.denials.record(
                    DenialKind::Filesystem,
                    &target.shown(),
                    Reason::PathNotWritable,
                    "only scratch (/tmp, /scratch) is writable; grant a host path with --write PATH",
                );
            }
        }
        Answer::Continue
    }

    fn serve_udp(&mut self) {
        let Some((udp, _)) = &self.dns else { return };
        let mut packet = [0u8; 1500];
        // A burst at a time, so that a flood of questions can't keep the loop from its clock.
        for _ in 0..64 {
            let Ok((length, _, Some(from))) =
                rustix::net::recvfrom(udp, &mut packet, RecvFlags::DONTWAIT)
            else {
                return;
            };
            if let Some((question, answer)) = skillcell_egress::refuse(&packet[..length]) {
                record_name(&mut self.denials, &question);
                // A skill that doesn't take its answer has only itself to blame.
                rustix::net::sendto(udp, &answer, SendFlags::DONTWAIT, &from).unwrap_or(0);
            }
        }
    }

    fn accept(&mut self) {
        let Some((_, tcp)) = &self.dns else { return };
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        if let Ok(client) = rustix::net::accept_with(tcp, flags)
            && self.clients.len() < MAX_CLIENTS
        {
            self.clients.push(client);
        }
    }

    fn serve_clients(&mut self, ready: &[bool]) {
        let mut kept = Vec::new();
        for (index, client) in std::mem::take(&mut self.clients).into_iter().enumerate() {
            if ready.get(index) != Some(&true) {
                kept.push(client);
                continue;
            }
            // One whole question per connection; anything else is closed.
            let mut packet = [0u8; 2048];
            let Ok((_, length)) = rustix::net::recv(&client, &mut packet, RecvFlags::DONTWAIT)
            else {
                continue;
            };
            if let Some((question, answer)) =
                packet.get(2..length).and_then(skillcell_egress::refuse)
            {
                record_name(&mut self.denials, &question);
                let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
                framed.extend_from_slice(&answer);
                rustix::net::send(&client, &framed, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                    .unwrap_or(0);
            }
        }
        self.clients = kept;
    }
}

/// A destination outside of the cell, where the broker serves some ports: `None` for what stays
/// inside. The kernel takes whatever goes on to a listener or refuses it, so nothing is decided by
/// an address that could have changed since.
fn through(door: &View, name: &str, to: SocketAddr, denials: &mut Denials) -> Option<Answer> {
    let address = to.ip().to_canonical();
    // Port 0 is the question which source address a name would be reached from.
    if address.is_loopback() || (name == "connect" && to.port() == 0) {
        return (name == "connect" && to.port() == 0).then_some(Answer::Continue);
    }
    let host = door
        .names
        .lookup(address)
        .map_or(Host::Addr(address), Host::Name);
    let (reason, hint) = if name != "connect" {
        (
            Reason::ProtocolNotAllowed,
            "a cell has no UDP; rules are about TCP".to_owned(),
        )
    } else if door.ports.contains(&to.port()) {
        return Some(Answer::Continue); // the broker decides
    } else {
        (Reason::PortNotAllowed, hint::allow_line(&host, to.port()))
    };
    let target = match &host {
        Host::Name(name) => format!("{name}:{}", to.port()),
        Host::Addr(_) => SocketAddr::new(address, to.port()).to_string(),
    };
    denials.record(DenialKind::Network, &target, reason, hint);
    Some(Answer::Errno(libc_errno(Errno::CONNREFUSED)))
}

fn address_hint(address: SocketAddr) -> String {
    hint::allow_line(&Host::Addr(address.ip().to_canonical()), address.port())
}

fn record_name(denials: &mut Denials, question: &skillcell_egress::Question) {
    denials.record(
        DenialKind::Network,
        &question.name,
        Reason::NetworkNotAllowed,
        match Host::parse(&question.name) {
            Ok(host) => hint::allow_line(&host, 443),
            Err(_) => "this is no host name that a rule could allow".to_owned(),
        },
    );
}

fn libc_errno(errno: Errno) -> i32 {
    errno.raw_os_error()
}

/// Whether something in the cell listens on a TCP port.
fn listens(pid: u32, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|file| {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&wanted))
                && fields.nth(1) == Some(LISTEN)
        })
    })
}
