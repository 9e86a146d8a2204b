//! Compiles the table to BPF and installs it.

use super::recorded::{Recorded, SECURITY};
use super::table::{OwnerlessMemory, Profile, Row, Rule, SYSV_IPC, Sockets, rules};
use crate::error::{During, Result, Step};
use crate::sys::{check, own, prctl};
use libc::{sock_filter, sock_fprog};
use rustix::fd::OwnedFd;
use std::sync::Arc;

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
    /// The same list for the cell's own init, which has nobody to ask.
    quiet: Vec<sock_filter>,
    list: AllowList,
    notify: bool,
    pass: Option<Pass>,
}

/// Numbers that let one message of ours through a filter that hands every call over: they go into
/// argument registers that the call doesn't use, and are gone with the next `execve`.
pub(crate) type Pass = [u32; 3];
const PASS_ARGS: [u8; 3] = [3, 4, 5];

/// The allow list as the kernel would run it, for calls that were handed over to be recorded.
#[derive(Clone)]
pub struct AllowList(Arc<[sock_filter]>);

/// What the allow list says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// Denied, or one of the calls that the supervisor has a say in.
    Ask,
    Errno(i32),
}

impl AllowList {
    /// By number and registers, which the caller of a waiting call can't change.
    pub fn verdict(&self, nr: i64, args: &[u64; 6]) -> Verdict {
        match evaluate(&self.0, ARCH, nr as u32, args.map(|a| a as u32)) {
            ALLOW => Verdict::Allowed,
            NOTIFY => Verdict::Ask,
            // Of a program that is damaged nothing is allowed.
            other if other & 0xffff_0000 == errno(0) => Verdict::Errno((other & 0xffff) as i32),
            _ => Verdict::Errno(libc::EPERM),
        }
    }
}

/// Runs a filter as the kernel would.
fn evaluate(program: &[sock_filter], arch: u32, nr: u32, args: [u32; 6]) -> u32 {
    let (mut acc, mut pc) = (0u32, 0usize);
    while let Some(i) = program.get(pc) {
        pc += 1;
        match i.code {
            LD_ABS => {
                acc = match i.k {
                    OFFSET_NR => nr,
                    OFFSET_ARCH => arch,
                    k => args[(k.saturating_sub(OFFSET_ARGS) / 8 % 6) as usize],
                }
            }
            AND => acc &= i.k,
            JEQ => pc += usize::from(if acc == i.k { i.jt } else { i.jf }),
            JGE => pc += usize::from(if acc >= i.k { i.jt } else { i.jf }),
            JSET => pc += usize::from(if acc & i.k != 0 { i.jt } else { i.jf }),
            JA => pc += i.k as usize,
            RET => return i.k,
            _ => return KILL,
        }
    }
    KILL
}

impl Filter {
    /// `notify`: denied calls go to a listener; without it they fail with EPERM unreported.
    pub fn compile(profile: Profile, notify: bool) -> Result<Filter> {
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
        let denied = errno(libc::EPERM);
        let quiet = assemble(&rules_of_init(profile, &rows), denied, &[]);
        let list = assemble(&rows, if notify { NOTIFY } else { denied }, &[]);
        let (program, pass) = match profile.record {
            Recorded::Everything if notify => {
                let pass = pass()?;
                (everything(pass), Some(pass))
            }
            Recorded::Security if notify => (assemble(&rows, NOTIFY, SECURITY), None),
            _ => (list.clone(), None),
        };
        Ok(Filter {
            program,
            quiet,
            list: AllowList(list.into()),
            notify,
            pass,
        })
    }

    /// What decides about calls that are handed over.
    pub(crate) fn list(&self) -> AllowList {
        self.list.clone()
    }

    /// Goes into the registers of the message that hands the listener over.
    pub(crate) fn pass(&self) -> Option<Pass> {
        self.pass
    }

    /// Whether installing it gives a listener.
    pub(crate) fn notifies(&self) -> bool {
        self.notify
    }

    /// Installs the filter on the calling process. From here on it holds for all its children.
    pub(crate) fn install(&self) -> Result<Option<OwnedFd>> {
        install(&self.program, self.notify)
    }

    /// Installs the list without a listener, for a process of ours that outlives the supervisor.
    pub(crate) fn install_quiet(&self) -> Result<()> {
        install(&self.quiet, false).map(|_| ())
    }
}

fn install(program: &[sock_filter], notify: bool) -> Result<Option<OwnedFd>> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1).during(Step::NoNewPrivs)?;
    let program = sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // WAIT_KILLABLE_RECV (5.19) keeps signals of the skill's own (a profiler's timer) from
    // restarting a call that the supervisor is answering; older kernels do without.
    const NEW_LISTENER: u64 = 1 << 3;
    const WAIT_KILLABLE: u64 = 1 << 5;
    let attempts: &[u64] = if notify {
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
    Ok(notify.then(|| own(ret)))
}

/// Init's list: its own forks are nobody's to count.
fn rules_of_init(profile: Profile, rows: &[Row]) -> Vec<Row> {
    if !profile.watch && !profile.count_forks {
        return rows.to_vec();
    }
    let mut quiet = rules(Profile {
        watch: false,
        count_forks: false,
        ..profile
    });
    quiet.extend(
        rows.iter()
            .filter(|(nr, ..)| SYSV_IPC.iter().any(|(known, _)| known == nr))
            .cloned(),
    );
    quiet
}

fn pass() -> Result<Pass> {
    let mut bytes = [0u8; 12];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).during(Step::Seccomp),
        }
    }
    Ok(std::array::from_fn(|i| {
        u32::from_ne_bytes([
            bytes[4 * i],
            bytes[4 * i + 1],
            bytes[4 * i + 2],
            bytes[4 * i + 3],
        ])
    }))
}

/// Hands every call over, but for one message of ours.
fn everything(pass: Pass) -> Vec<sock_filter> {
    let mut program = preamble();
    // Each failed test jumps to the end.
    let mut remaining = 2 * PASS_ARGS.len() as u8 + 1;
    program.push(jump(JEQ, libc::SYS_sendmsg as u32, 0, remaining));
    for (arg, number) in PASS_ARGS.iter().zip(pass) {
        program.push(op(LD_ABS, OFFSET_ARGS + 8 * u32::from(*arg)));
        remaining -= 2;
        program.push(jump(JEQ, number, 0, remaining));
    }
    program.push(op(RET, ALLOW));
    program.push(op(RET, NOTIFY));
    program
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

/// Kills foreign ABIs; leaves the number of the call.
fn preamble() -> Vec<sock_filter> {
    vec![
        op(LD_ABS, OFFSET_ARCH),
        jump(JEQ, ARCH, 1, 0),
        // i386 and other foreign ABIs have other numbers: nothing below would hold for them.
        op(RET, KILL),
        op(LD_ABS, OFFSET_NR),
    ]
}

/// `handed_over`: calls that go to the listener where they are allowed.
fn assemble(rows: &[Row], deny: u32, handed_over: &[libc::c_long]) -> Vec<sock_filter> {
    let mut program = preamble();
    program.push(jump(JGE, X32_BIT, 0, 1));
    program.push(op(RET, deny));
    program.extend(search(&segments(rows, deny, handed_over)));
    program
}

/// A run of system call numbers that are answered alike, from its first one on.
struct Segment {
    first: u32,
    body: Vec<sock_filter>,
}

/// The whole range of numbers, in order. What no row names is denied.
fn segments(rows: &[Row], deny: u32, handed_over: &[libc::c_long]) -> Vec<Segment> {
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
        let allow = if handed_over.contains(nr) {
            NOTIFY
        } else {
            ALLOW
        };
        let nr = *nr as u32;
        if nr > next {
            put(next, denied());
        }
        put(nr, rule_body(rule, allow, deny));
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

fn rule_body(rule: &Rule, allow: u32, deny: u32) -> Vec<sock_filter> {
    match rule {
        Rule::Allow => vec![op(RET, allow)],
        Rule::Absent => vec![op(RET, errno(libc::ENOSYS))],
        Rule::Watch => vec![op(RET, NOTIFY)],
        Rule::WatchBits { arg, mask } => vec![
            op(LD_ABS, OFFSET_ARGS + 8 * u32::from(*arg)),
            jump(JSET, *mask, 0, 1),
            op(RET, NOTIFY),
            op(RET, allow),
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
                body.push(op(RET, allow));
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
        record: Recorded::Denials,
        unix: UnixSockets::Named,
        count_forks: false,
        ownerless_memory: OwnerlessMemory::Counted,
    };

    fn compile(profile: Profile, notify: bool) -> Filter {
        Filter::compile(profile, notify).unwrap_or_else(|e| panic!("{e}"))
    }

    fn ask(profile: Profile, nr: libc::c_long, args: [u32; 6]) -> u32 {
        evaluate(&compile(profile, true).program, ARCH, nr as u32, args)
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
        let program = compile(SANDBOX, true).program;
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
    fn an_installer_without_namespaces_has_no_sockets_but_sets_modes_and_times() {
        let installer = Profile {
            sockets: Sockets::InstallerPairsOnly,
            ..SANDBOX
        };
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let args = [family as u32, libc::SOCK_STREAM as u32, 0, 0, 0, 0];
            assert_eq!(ask(installer, libc::SYS_socket, args), NOTIFY, "{family}");
        }
        assert_eq!(ask(installer, libc::SYS_connect, [0; 6]), NOTIFY);
        assert_eq!(ask(installer, libc::SYS_shmget, [0; 6]), NOTIFY);
        assert_eq!(ask(installer, libc::SYS_fchmod, [0; 6]), ALLOW);
        assert_eq!(ask(installer, libc::SYS_utimensat, [0; 6]), ALLOW);
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
        let program = compile(SANDBOX, false).program;
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
        let program = compile(SANDBOX, true).program;
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

    #[test]
    fn what_is_recorded_is_handed_over_and_what_is_denied_still_is() {
        let security = Profile {
            record: Recorded::Security,
            ..SANDBOX
        };
        for nr in [libc::SYS_execve, libc::SYS_openat, libc::SYS_exit_group] {
            assert_eq!(ask(SANDBOX, nr, [0; 6]), ALLOW, "{nr}");
            assert_eq!(ask(security, nr, [0; 6]), NOTIFY, "{nr}");
        }
        assert_eq!(ask(security, libc::SYS_read, [0; 6]), ALLOW);
        assert_eq!(ask(security, libc::SYS_mount, [0; 6]), NOTIFY);
    }

    #[test]
    fn a_full_record_hands_over_every_call_but_the_one_with_the_pass() {
        let filter = compile(
            Profile {
                record: Recorded::Everything,
                ..SANDBOX
            },
            true,
        );
        let ask = |nr: libc::c_long, args| evaluate(&filter.program, ARCH, nr as u32, args);
        for nr in 0..600 {
            assert_eq!(ask(nr, [0; 6]), NOTIFY, "{nr}");
        }
        let [a, b, c] = filter.pass().unwrap_or_else(|| panic!("no pass"));
        assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, b, c]), ALLOW);
        assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, b, !c]), NOTIFY);
        assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, a, !b, c]), NOTIFY);
        assert_eq!(ask(libc::SYS_sendmsg, [5, 1, 0, !a, b, c]), NOTIFY);
        assert_eq!(ask(libc::SYS_sendto, [5, 1, 0, a, b, c]), NOTIFY);
        assert_eq!(
            evaluate(&filter.program, 0x4000_0003, 4, [0; 6]),
            KILL,
            "foreign ABIs"
        );
    }

    #[test]
    fn the_list_decides_about_recorded_calls_as_the_kernel_would_have() {
        let plain = compile(SANDBOX, true);
        for record in [Recorded::Security, Recorded::Everything] {
            let filter = compile(Profile { record, ..SANDBOX }, true);
            for nr in 0..600u32 {
                for args in [
                    [0; 6],
                    [u64::MAX; 6],
                    [2, 1, 6, 0, 0, 0],
                    [16, 3, 9, 0, 0, 0],
                ] {
                    let kernel = evaluate(&plain.program, ARCH, nr, args.map(|a| a as u32));
                    let expected = match kernel {
                        ALLOW => Verdict::Allowed,
                        NOTIFY => Verdict::Ask,
                        other => Verdict::Errno((other & 0xffff) as i32),
                    };
                    assert_eq!(filter.list().verdict(nr.into(), &args), expected, "{nr}");
                }
            }
        }
    }

    #[test]
    fn init_asks_nobody() {
        let filter = compile(SANDBOX, true);
        for nr in 0..600u32 {
            assert_ne!(evaluate(&filter.quiet, ARCH, nr, [0; 6]), NOTIFY, "{nr}");
        }
        let mount = evaluate(&filter.quiet, ARCH, libc::SYS_mount as u32, [0; 6]);
        assert_eq!(mount, errno(libc::EPERM));
    }
}
