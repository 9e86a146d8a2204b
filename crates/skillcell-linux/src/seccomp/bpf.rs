//! Compiles the table to BPF and installs it.

use super::notify::Listener;
use super::table::{OwnerlessMemory, Profile, Row, Rule, SYSV_IPC, Sockets, rules};
use crate::error::{During, Result, Step};
use crate::sys::{check, own, prctl};
use libc::{sock_filter, sock_fprog};

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;

const LD_ABS: u16 = 0x20;
const AND: u16 = 0x54;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const JA: u16 = 0x05;
const RET: u16 = 0x06;

const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;
const X32_BIT: u32 = 0x4000_0000;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const NOTIFY: u32 = 0x7fc0_0000;

fn errno(e: i32) -> u32 {
    0x0005_0000 | (e as u32 & 0xffff)
}

/// A compiled filter, ready to install in the child.
pub struct Filter {
    program: Vec<sock_filter>,
    notify: bool,
}

impl Filter {
    /// `notify`: denied calls go to a listener; without it they fail with EPERM unreported.
    pub fn compile(profile: Profile, notify: bool) -> Filter {
        let profile = Profile {
            watch: profile.watch && notify,
            count_forks: profile.count_forks && notify,
            ..profile
        };
        let mut rows = rules(profile);
        let counted = profile.ownerless_memory == OwnerlessMemory::Counted;
        if profile.sockets == Sockets::PrivateNamespace && counted {
            rows.extend(
                SYSV_IPC
                    .iter()
                    .map(|(nr, name)| (*nr, *name, Rule::Allow, "private by the ipc namespace")),
            );
        }
        let deny = if notify { NOTIFY } else { errno(libc::EPERM) };
        Filter {
            program: assemble(&rows, deny),
            notify,
        }
    }

    /// Whether installing it gives a listener.
    pub(crate) fn notifies(&self) -> bool {
        self.notify
    }

    /// Installs the filter on the calling process. From here on it holds for all its children.
    pub(crate) fn install(&self) -> Result<Option<Listener>> {
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1).during(Step::NoNewPrivs)?;
        let program = sock_fprog {
            len: self.program.len() as u16,
            filter: self.program.as_ptr().cast_mut(),
        };
        // WAIT_KILLABLE_RECV (5.19) keeps signals of the skill's own (a profiler's timer) from
        // restarting a call that the supervisor is answering; older kernels do without.
        const NEW_LISTENER: u64 = 1 << 3;
        const WAIT_KILLABLE: u64 = 1 << 5;
        let attempts: &[u64] = if self.notify {
            &[NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER]
        } else {
            &[0]
        };
        let mut last = Err(rustix::io::Errno::INVAL);
        for flags in attempts {
            // SAFETY: `program` points at `len` instructions that live across the call.
            last = check(unsafe { libc::syscall(libc::SYS_seccomp, 1, *flags, &program) });
            if last != Err(rustix::io::Errno::INVAL) {
                break;
            }
        }
        let ret = last.during(Step::Seccomp)?;
        Ok(self.notify.then(|| Listener::new(own(ret))))
    }
}

fn op(code: u16, k: u32) -> sock_filter {
    sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn assemble(rows: &[Row], deny: u32) -> Vec<sock_filter> {
    let mut program = vec![
        op(LD_ABS, OFFSET_ARCH),
        jump(JEQ, ARCH, 1, 0),
        // i386 and other foreign ABIs have other numbers: nothing below would hold for them.
        op(RET, KILL),
        op(LD_ABS, OFFSET_NR),
        jump(JGE, X32_BIT, 0, 1),
        op(RET, deny),
    ];
    program.extend(search(&segments(rows, deny)));
    program
}

/// A run of system call numbers that are answered alike, from its first one on.
struct Segment {
    first: u32,
    body: Vec<sock_filter>,
}

/// The whole range of numbers, in order. What no row names is denied.
fn segments(rows: &[Row], deny: u32) -> Vec<Segment> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_key(|(nr, ..)| *nr);
    let denied = || vec![op(RET, deny)];
    let mut found = vec![Segment {
        first: 0,
        body: denied(),
    }];
    let mut put = |first: u32, body: Vec<sock_filter>| match found.last_mut() {
        Some(last) if same(&last.body, &body) => {}
        Some(last) if last.first == first => last.body = body,
        _ => found.push(Segment { first, body }),
    };
    let mut next = 0;
    for (nr, _, rule, _) in sorted {
        let nr = *nr as u32;
        if nr > next {
            put(next, denied());
        }
        put(nr, rule_body(rule, deny));
        next = nr + 1;
    }
    put(next, denied());
    found
}

fn same(a: &[sock_filter], b: &[sock_filter]) -> bool {
    let key = |i: &sock_filter| (i.code, i.jt, i.jf, i.k);
    a.iter().map(key).eq(b.iter().map(key))
}

/// A binary search: the kernel runs the filter for every number once when it is installed, and on
/// each call whose answer depends on arguments.
fn search(segments: &[Segment]) -> Vec<sock_filter> {
    match segments {
        [] => Vec::new(),
        [only] => only.body.clone(),
        many => {
            let (left, right) = many.split_at(many.len() / 2);
            let below = search(left);
            let mut block = vec![jump(JGE, right[0].first, 0, 1), op(JA, below.len() as u32)];
            block.extend(below);
            block.extend(search(right));
            block
        }
    }
}

fn rule_body(rule: &Rule, deny: u32) -> Vec<sock_filter> {
    match rule {
        Rule::Allow => vec![op(RET, ALLOW)],
        Rule::Absent => vec![op(RET, errno(libc::ENOSYS))],
        Rule::Watch => vec![op(RET, NOTIFY)],
        Rule::WatchBits { arg, mask } => vec![
            op(LD_ABS, OFFSET_ARGS + 8 * u32::from(*arg)),
            jump(JSET, *mask, 0, 1),
            op(RET, NOTIFY),
            op(RET, ALLOW),
        ],
        Rule::AnyOf(alternatives) => {
            let mut body = Vec::new();
            for tests in alternatives {
                // Each failed test jumps past the alternative's ALLOW.
                let mut remaining = tests.len() * 3;
                for test in tests {
                    body.push(op(LD_ABS, OFFSET_ARGS + 8 * u32::from(test.arg)));
                    body.push(op(AND, test.mask));
                    remaining -= 3;
                    body.push(jump(JEQ, test.equals, 0, (remaining + 1) as u8));
                }
                body.push(op(RET, ALLOW));
            }
            body.push(op(RET, deny));
            body
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::UnixSockets;
    use super::*;

    const SANDBOX: Profile = Profile {
        sockets: Sockets::PrivateNamespace,
        pin_affinity: false,
        watch: true,
        unix: UnixSockets::Named,
        count_forks: false,
        ownerless_memory: OwnerlessMemory::Counted,
    };

    /// Runs a filter as the kernel would.
    fn evaluate(program: &[sock_filter], arch: u32, nr: u32, args: [u32; 6]) -> u32 {
        let (mut acc, mut pc) = (0u32, 0usize);
        loop {
            let i = program[pc];
            pc += 1;
            match i.code {
                LD_ABS => {
                    acc = match i.k {
                        OFFSET_NR => nr,
                        OFFSET_ARCH => arch,
                        k => args[((k - OFFSET_ARGS) / 8) as usize],
                    }
                }
                AND => acc &= i.k,
                JEQ => pc += usize::from(if acc == i.k { i.jt } else { i.jf }),
                JGE => pc += usize::from(if acc >= i.k { i.jt } else { i.jf }),
                JSET => pc += usize::from(if acc & i.k != 0 { i.jt } else { i.jf }),
                JA => pc += i.k as usize,
                RET => return i.k,
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    fn ask(profile: Profile, nr: libc::c_long, args: [u32; 6]) -> u32 {
        evaluate(
            &Filter::compile(profile, true).program,
            ARCH,
            nr as u32,
            args,
        )
    }

    #[test]
    fn unlisted_calls_are_denied_and_reported() {
        for nr in [
            libc::SYS_mount,
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_keyctl,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_userfaultfd,
            libc::SYS_process_vm_readv,
            libc::SYS_pidfd_getfd,
            libc::SYS_perf_event_open,
            libc::SYS_open_by_handle_at,
            libc::SYS_fsopen,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            9999,
        ] {
            assert_eq!(ask(SANDBOX, nr, [0; 6]), NOTIFY, "{nr}");
        }
    }

    #[test]
    fn foreign_abis_are_denied() {
        let program = Filter::compile(SANDBOX, true).program;
        assert_eq!(evaluate(&program, 0x4000_0003, 4, [0; 6]), KILL);
        assert_eq!(
            evaluate(&program, ARCH, libc::SYS_read as u32 | X32_BIT, [0; 6]),
            NOTIFY
        );
    }

    #[test]
    fn clone_is_allowed_without_namespace_flags_only() {
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_clone,
                [libc::SIGCHLD as u32, 0, 0, 0, 0, 0]
            ),
            ALLOW
        );
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_clone,
                [libc::CLONE_NEWUSER as u32, 0, 0, 0, 0, 0]
            ),
            NOTIFY
        );
        assert_eq!(ask(SANDBOX, libc::SYS_clone3, [0; 6]), errno(libc::ENOSYS));
    }

    #[test]
    fn sockets_are_unix_tcp_and_udp_only() {
        let s = |family: i32, kind: i32, protocol: i32| {
            ask(
                SANDBOX,
                libc::SYS_socket,
                [family as u32, kind as u32, protocol as u32, 0, 0, 0],
            )
        };
        assert_eq!(
            s(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0),
            ALLOW
        );
        assert_eq!(s(libc::AF_UNIX, libc::SOCK_DGRAM, 0), ALLOW);
        assert_eq!(s(libc::AF_NETLINK, libc::SOCK_RAW, 0), ALLOW);
        assert_eq!(s(libc::AF_NETLINK, libc::SOCK_RAW, 9), NOTIFY);
        assert_eq!(s(libc::AF_INET, libc::SOCK_RAW, 1), NOTIFY);
        assert_eq!(
            s(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
            NOTIFY
        );
        assert_eq!(s(libc::AF_INET, libc::SOCK_STREAM, 132), NOTIFY);
        assert_eq!(s(libc::AF_INET, libc::SOCK_STREAM, 262), NOTIFY);
        for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, 44, 9999] {
            assert_eq!(s(family, libc::SOCK_STREAM, 0), NOTIFY, "{family}");
        }
    }

    #[test]
    fn the_process_level_has_no_sockets_but_stream_pairs() {
        let process = Profile {
            sockets: Sockets::PairsOnly,
            ..SANDBOX
        };
        assert_eq!(
            ask(
                process,
                libc::SYS_socket,
                [libc::AF_UNIX as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0]
            ),
            NOTIFY
        );
        assert_eq!(ask(process, libc::SYS_connect, [0; 6]), NOTIFY);
        assert_eq!(ask(process, libc::SYS_shmget, [0; 6]), NOTIFY);
        assert_eq!(
            ask(
                process,
                libc::SYS_socketpair,
                [libc::AF_UNIX as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0]
            ),
            ALLOW
        );
        assert_eq!(
            ask(
                process,
                libc::SYS_socketpair,
                [libc::AF_UNIX as u32, libc::SOCK_DGRAM as u32, 0, 0, 0, 0]
            ),
            NOTIFY
        );
    }

    #[test]
    fn named_unix_sockets_can_be_switched_off() {
        let pairs = Profile {
            unix: UnixSockets::PairsOnly,
            ..SANDBOX
        };
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
            let args = [libc::AF_UNIX as u32, kind as u32, 0, 0, 0, 0];
            assert_eq!(ask(pairs, libc::SYS_socket, args), NOTIFY);
            assert_eq!(ask(SANDBOX, libc::SYS_socket, args), ALLOW);
        }
    }

    #[test]
    fn the_process_level_changes_no_attributes() {
        let process = Profile {
            sockets: Sockets::PairsOnly,
            ..SANDBOX
        };
        for nr in [
            libc::SYS_chmod,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
            libc::SYS_fsetxattr,
            libc::SYS_utime,
            libc::SYS_futimesat,
        ] {
            assert_eq!(ask(process, nr, [0; 6]), NOTIFY, "{nr}");
            assert_eq!(ask(SANDBOX, nr, [0; 6]), ALLOW, "{nr}");
        }
    }

    #[test]
    fn terminal_injection_is_denied() {
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_ioctl,
                [0, libc::TIOCSTI as u32, 0, 0, 0, 0]
            ),
            NOTIFY
        );
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_ioctl,
                [0, libc::TCGETS as u32, 0, 0, 0, 0]
            ),
            ALLOW
        );
    }

    #[test]
    fn opening_for_writing_is_watched_and_reading_is_not() {
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_openat,
                [0, 0, libc::O_RDONLY as u32, 0, 0, 0]
            ),
            ALLOW
        );
        assert_eq!(
            ask(
                SANDBOX,
                libc::SYS_openat,
                [0, 0, (libc::O_WRONLY | libc::O_CREAT) as u32, 0, 0, 0]
            ),
            NOTIFY
        );
    }

    #[test]
    fn without_a_listener_denials_are_errors_and_watched_calls_are_allowed() {
        let program = Filter::compile(SANDBOX, false).program;
        assert_eq!(
            evaluate(&program, ARCH, libc::SYS_mount as u32, [0; 6]),
            errno(libc::EPERM)
        );
        assert_eq!(
            evaluate(&program, ARCH, libc::SYS_connect as u32, [0; 6]),
            ALLOW
        );
    }

    #[test]
    fn the_search_answers_as_the_table_says_for_every_number() {
        let program = Filter::compile(SANDBOX, true).program;
        let mut rows = rules(SANDBOX);
        rows.extend(
            SYSV_IPC
                .iter()
                .map(|(nr, name)| (*nr, *name, Rule::Allow, "ipc")),
        );
        for nr in 0..1200u32 {
            let row = rows.iter().find(|(n, ..)| *n as u32 == nr);
            let got = evaluate(&program, ARCH, nr, [0; 6]);
            match row {
                None => assert_eq!(got, NOTIFY, "{nr}"),
                Some((_, name, Rule::Allow, _)) => assert_eq!(got, ALLOW, "{name}"),
                Some((_, name, Rule::Absent, _)) => assert_eq!(got, errno(libc::ENOSYS), "{name}"),
                Some((_, name, Rule::Watch, _)) => assert_eq!(got, NOTIFY, "{name}"),
                Some(_) => {}
            }
        }
        assert!(program.len() < 1000, "{}", program.len());
    }

    #[test]
    fn no_call_is_listed_twice_and_each_has_a_reason() {
        let mut seen = std::collections::BTreeSet::new();
        for (nr, name, _, reason) in rules(SANDBOX) {
            assert!(seen.insert(nr), "{name} twice");
            assert!(reason.len() > 10, "{name}");
        }
    }
}
