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

/// Numbers that let one message of ours through a filter that hands messages over: they go into
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
    /// For another process of ours that will answer for it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |i: &sock_filter| {
            let mut b = [0; 8];
            b[..2].copy_from_slice(&i.code.to_le_bytes());
            (b[2], b[3]) = (i.jt, i.jf);
            b[4..].copy_from_slice(&i.k.to_le_bytes());
            b
        };
        self.0.iter().flat_map(bytes).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> AllowList {
        let instruction = |b: &[u8]| sock_filter {
            code: u16::from_le_bytes([b[0], b[1]]),
            jt: b[2],
            jf: b[3],
            k: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        };
        AllowList(bytes.chunks_exact(8).map(instruction).collect())
    }

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
        let pass = if notify { Some(pass()?) } else { None };
        let quiet = assemble(&rules_of_init(profile, &rows), denied, &[], None);
        let deny = if notify { NOTIFY } else { denied };
        let list = assemble(&rows, deny, &[], None);
        let program = match (profile.record, pass) {
            (Recorded::Everything, Some(pass)) => everything(pass),
            (Recorded::Security, Some(_)) => assemble(&rows, deny, SECURITY, pass),
            _ => assemble(&rows, deny, &[], pass),
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
    pub fn list(&self) -> AllowList {
        self.list.clone()
    }

    /// Goes into the registers of the message that hands the listener over, where there is one.
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
    program.extend(our_message(pass));
    program.push(op(RET, NOTIFY));
    program
}

/// Lets one message of ours through: the one that gives the supervisor the listener, and so can't
/// wait for an answer.
fn our_message(pass: Pass) -> Vec<sock_filter> {
    let mut program = Vec::new();
    // Each failed test jumps to the end.
    let mut remaining = 2 * PASS_ARGS.len() as u8 + 1;
    program.push(jump(JEQ, libc::SYS_sendmsg as u32, 0, remaining));
    for (arg, number) in PASS_ARGS.iter().zip(pass) {
        program.push(op(LD_ABS, OFFSET_ARGS + 8 * u32::from(*arg)));
        remaining -= 2;
        program.push(jump(JEQ, number, 0, remaining));
    }
    program.push(op(RET, ALLOW));
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
fn assemble(
    rows: &[Row],
    deny: u32,
    handed_over: &[libc::c_long],
    pass: Option<Pass>,
) -> Vec<sock_filter> {
    let mut program = preamble();
    program.push(jump(JGE, X32_BIT, 0, 1));
    program.push(op(RET, deny));
    if let Some(pass) = pass {
        program.extend(our_message(pass));
        // The tests of its registers have replaced the number.
        program.push(op(LD_ABS, OFFSET_NR));
    }
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
#[path = "bpf_tests.rs"]
mod tests;
