//! What the supervisor has a say in: denials, and calls that another mechanism holds. Nothing here
//! is decided by memory that the skill could change meanwhile.

use super::decode::{self, internet};
use super::paths_inside::{Place, Target, Writes};
use super::{Eyes, World};
use rustix::io::Errno;
use skillcell_audit::{Denied, Event, RecordFailed, Syscall, Task};
use skillcell_core::{DenialKind, Host, Reason};
use skillcell_egress::hint;
use skillcell_linux::procfs;
use skillcell_linux::seccomp::{Answer, Notification};
use std::net::SocketAddr;

const DNS_PORT: u16 = 53;
const NO_NETWORK: &str =
    "no policy gives a cell sockets of this kind; the process level has none at all";

type Judged = Result<Answer, RecordFailed>;

/// Something that is denied, in the words of its denial.
struct No<'a> {
    kind: DenialKind,
    target: &'a str,
    reason: Reason,
    hint: String,
}

impl Eyes {
    pub(super) fn judge(&mut self, call: &Notification, name: &str, task: Task) -> Judged {
        let bare = matches!(self.scene.world, World::Bare { .. });
        match name {
            "clone" | "fork" | "vfork" if self.scene.fork_limit.is_some() => {
                self.judge_fork(call, name, task)
            }
            "connect" => self.judge_destination(call, name, task, (call.args[1], call.args[2])),
            "sendto" => self.judge_destination(call, name, task, (call.args[4], call.args[5])),
            "sendmsg" | "sendmmsg" => self.judge_messages(call, name, task),
            "socket" | "socketpair" => self.judge_socket(call, name, task),
            _ => match Writes::of(name, &call.args) {
                Some(write) if !(bare && write.needs_mounts()) => {
                    self.judge_write(call, &write, task)
                }
                _ => self.deny_call(call, name, task),
            },
        }
    }

    /// Into the envelope, and into the log before the skill can know.
    fn deny(
        &mut self,
        task: Task,
        no: No<'_>,
        syscall: Option<Syscall>,
    ) -> Result<(), RecordFailed> {
        let target = self.scene.recorder.redactor().clean(no.target);
        self.denials.record(no.kind, &target, no.reason, no.hint);
        let event = Event::Denied(Denied {
            kind: no.kind,
            target: self.scene.recorder.text(target.as_bytes()),
            reason: no.reason,
            syscall,
        });
        self.scene.recorder.decide(Some(task), &event)
    }

    /// Where no cgroup counts: one more process or thread, if there is room. The flags are a
    /// register's value, so letting the kernel go on does what was looked at.
    fn judge_fork(&mut self, call: &Notification, name: &str, task: Task) -> Judged {
        const NAMESPACES: u64 = 0x7e02_0080;
        if name == "clone" && call.args[0] & NAMESPACES != 0 {
            return self.deny_call(call, name, task);
        }
        let Some((root, limit)) = self.scene.fork_limit else {
            return Ok(Answer::Continue);
        };
        // Whoever asks is one of them: an error, and a count without the asker, mean that they
        // can't be counted.
        if procfs::tasks_below(root).is_ok_and(|tasks| (1..limit).contains(&tasks)) {
            return Ok(Answer::Continue);
        }
        self.forks_denied += 1;
        Ok(Answer::Errno(libc_errno(Errno::AGAIN)))
    }

    fn deny_call(&mut self, call: &Notification, name: &str, task: Task) -> Judged {
        let target = match name {
            "ioctl" => format!("ioctl {:#x}", call.args[1] as u32),
            "clone" => "clone with new namespaces".into(),
            "prctl" => format!("prctl {}", call.args[0] as i32),
            _ => name.to_owned(),
        };
        let errno = match name {
            // As a terminal would answer; programs take it as "not a terminal".
            "ioctl" => Errno::NOTTY,
            // Numbers that this build has no name for are newer than it: programs fall back.
            _ if name.starts_with("syscall_") => Errno::NOSYS,
            _ => Errno::PERM,
        };
        let no = No {
            kind: DenialKind::Syscall,
            target: &target,
            reason: Reason::SyscallNotAllowed,
            hint: "no policy allows this system call in a cell".into(),
        };
        self.refuse(call, name, task, no, errno)
    }

    /// Denied, with the call itself in the record.
    fn refuse(
        &mut self,
        call: &Notification,
        name: &str,
        task: Task,
        no: No<'_>,
        errno: Errno,
    ) -> Judged {
        let errno = libc_errno(errno);
        let syscall = self.decoded(call, name, Some(errno));
        self.deny(task, no, Some(syscall))?;
        Ok(Answer::Errno(errno))
    }

    fn judge_socket(&mut self, call: &Notification, name: &str, task: Task) -> Judged {
        let target = format!(
            "{name}({}, {}, {})",
            decode::family(call.args[0] as u32),
            decode::socket_type(call.args[1] as u32),
            call.args[2] as u32
        );
        let no = No {
            kind: DenialKind::Network,
            target: &target,
            reason: Reason::NetworkNotAllowed,
            hint: NO_NETWORK.into(),
        };
        self.refuse(call, name, task, no, Errno::ACCESS)
    }

    /// Each message with an address of its own is as `sendto`; most have none.
    fn judge_messages(&mut self, call: &Notification, name: &str, task: Task) -> Judged {
        for destination in self.reader().destinations(call, name) {
            let judged = self.judge_destination(call, name, task, destination)?;
            if judged != Answer::Continue {
                return Ok(judged);
            }
        }
        Ok(Answer::Continue)
    }

    fn judge_destination(
        &mut self,
        call: &Notification,
        name: &str,
        task: Task,
        (address, length): (u64, u64),
    ) -> Judged {
        let bare = matches!(self.scene.world, World::Bare { .. });
        let destination = self
            .listener
            .read_bytes(call, address, (length as usize).min(28))
            .and_then(|bytes| internet(&bytes));
        let Some(destination) = destination else {
            if bare {
                let no = No {
                    kind: DenialKind::Network,
                    target: name,
                    reason: Reason::NetworkNotAllowed,
                    hint: NO_NETWORK.into(),
                };
                return self.refuse(call, name, task, no, Errno::ACCESS);
            }
            // A unix socket inside, or an address that the kernel rejects.
            return Ok(Answer::Continue);
        };
        match self.through_door(name, destination) {
            Through::NoDoor => {}
            Through::Goes => return Ok(Answer::Continue),
            Through::Denied {
                target,
                reason,
                hint,
            } => {
                let no = No {
                    kind: DenialKind::Network,
                    target: &target,
                    reason,
                    hint,
                };
                return self.refuse(call, name, task, no, Errno::CONNREFUSED);
            }
        }
        let target = destination.to_string();
        if bare || !destination.ip().to_canonical().is_loopback() {
            let no = No {
                kind: DenialKind::Network,
                target: &target,
                reason: Reason::NetworkNotAllowed,
                hint: hint::allow_line(
                    &Host::Addr(destination.ip().to_canonical()),
                    destination.port(),
                ),
            };
            let errno = if bare {
                Errno::ACCESS
            } else {
                Errno::NETUNREACH
            };
            return self.refuse(call, name, task, no, errno);
        }
        if name == "connect"
            && destination.port() != DNS_PORT
            && !listens(call.pid, destination.port())
        {
            let no = No {
                kind: DenialKind::Network,
                target: &target,
                reason: Reason::HostLoopbackUnreachable,
                hint: "loopback is the cell's own and nothing listens there; services of the host are not reachable".into(),
            };
            self.deny(task, no, None)?;
        }
        // The namespace has loopback only, so whatever the address is by now, it stays inside.
        Ok(Answer::Continue)
    }

    /// A destination outside of the cell, where the broker serves some ports. The kernel takes
    /// whatever goes on to a listener or refuses it, so nothing is decided by an address that could
    /// have changed since.
    fn through_door(&self, name: &str, to: SocketAddr) -> Through {
        let Some(door) = &self.scene.door else {
            return Through::NoDoor;
        };
        let address = to.ip().to_canonical();
        // Port 0 is the question which source address a name would be reached from.
        if name == "connect" && to.port() == 0 {
            return Through::Goes;
        }
        if address.is_loopback() {
            return Through::NoDoor;
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
            return Through::Goes; // the broker decides
        } else {
            (Reason::PortNotAllowed, hint::allow_line(&host, to.port()))
        };
        let target = match &host {
            Host::Name(name) => format!("{name}:{}", to.port()),
            Host::Addr(_) => SocketAddr::new(address, to.port()).to_string(),
        };
        Through::Denied {
            target,
            reason,
            hint,
        }
    }

    fn judge_write(&mut self, call: &Notification, write: &Writes, task: Task) -> Judged {
        let target = match write.place() {
            Place::File(fd) => Target::of_file(call.pid, fd),
            Place::Path(dir, address) => {
                let path = self.reader().path(call, address);
                path.and_then(|path| Target::new(call.pid, dir, &path))
            }
        };
        // What can't be found out now is an error of the call itself.
        let Some(target) = target else {
            return Ok(Answer::Continue);
        };
        let denied = match &self.scene.world {
            World::Namespaces => target.is_read_only(write),
            World::Bare { writable } => target.is_outside(writable, write),
        };
        if denied {
            let no = No {
                kind: DenialKind::Filesystem,
                target: &target.shown(),
                reason: Reason::PathNotWritable,
                hint:
                    "only scratch (/tmp, /scratch) is writable; grant a host path with --write PATH"
                        .into(),
            };
            self.deny(task, no, None)?;
        }
        Ok(Answer::Continue)
    }
}

enum Through {
    /// What stays inside, or there is no door.
    NoDoor,
    Goes,
    Denied {
        target: String,
        reason: Reason,
        hint: String,
    },
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
