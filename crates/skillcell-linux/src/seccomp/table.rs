//! The allow list. One row per system call: number, name, what is allowed, and why.

use super::recorded::Recorded;
use libc::*;

/// What a filter is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    pub sockets: Sockets,
    /// Affinity is what holds the CPU limit, so the skill must not change it.
    pub pin_affinity: bool,
    /// Report writes and connections through the listener.
    pub watch: bool,
    /// What of the allowed calls goes to the listener as well.
    pub record: Recorded,
    /// Named unix sockets. A read-only mount doesn't keep anybody from connecting to a socket in
    /// it, so they are off where a folder of the host is shown.
    pub unix: UnixSockets,
    /// Memory that belongs to no process (memfd, System V segments): off where no cgroup counts it.
    pub ownerless_memory: OwnerlessMemory,
    /// Report every new process and thread, for hosts where no cgroup counts them.
    pub count_forks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// The cell has a network namespace of its own with loopback only.
    PrivateNamespace,
    /// There is no namespace around the process: connected stream pairs and nothing else.
    PairsOnly,
    /// The same around an installer, which has to set modes and times of what it unpacks.
    InstallerPairsOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerlessMemory {
    Counted,
    Denied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixSockets {
    Named,
    PairsOnly,
}

/// How the filter answers one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Allow,
    /// As if the kernel didn't have it: callers fall back to an older call that can be inspected.
    Absent,
    /// Reported, then decided by the kernel.
    Watch,
    /// `Watch` where an argument has any of these bits, `Allow` elsewhere.
    WatchBits {
        arg: u8,
        mask: u32,
    },
    /// Allowed if one of these holds; denied otherwise. Each is a conjunction.
    AnyOf(Vec<Vec<Test>>),
}

/// A test on the low 32 bits of an argument: every argument tested here is an `int` to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) arg: u8,
    pub(super) mask: u32,
    pub(super) equals: u32,
}

fn is(arg: u8, value: c_int) -> Test {
    Test {
        arg,
        mask: u32::MAX,
        equals: value as u32,
    }
}

fn bits(arg: u8, mask: u32, equals: u32) -> Test {
    Test { arg, mask, equals }
}

const NAMESPACE_FLAGS: u32 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | 0x80/* CLONE_NEWTIME */) as u32;

/// Socket types carry SOCK_CLOEXEC and SOCK_NONBLOCK in the same argument.
const TYPE_MASK: u32 = 0xf;

const WRITE_FLAGS: u32 = (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) as u32;

/// Terminal and device requests that programs need; TIOCSTI, TIOCLINUX and the rest stay out.
const IOCTLS: &[u64] = &[
    TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, FIOASYNC,
    0x8933, /* SIOCGIFINDEX */
    0x8910, /* SIOCGIFNAME */ 0x8912, /* SIOCGIFCONF */ 0x8913,
    /* SIOCGIFFLAGS */ 0x8915, /* SIOCGIFADDR */
    0x8927, /* SIOCGIFHWADDR */ 0x8921, /* SIOCGIFMTU */
];

fn socket_rule(profile: Profile) -> Rule {
    let unix = match profile.unix {
        UnixSockets::Named => vec![vec![is(0, AF_UNIX)]],
        UnixSockets::PairsOnly => vec![],
    };
    let stream = |family| vec![is(0, family), bits(1, TYPE_MASK, SOCK_STREAM as u32)];
    let datagram = |family, protocol| {
        vec![
            is(0, family),
            bits(1, TYPE_MASK, SOCK_DGRAM as u32),
            is(2, protocol),
        ]
    };
    // Route queries (getifaddrs, getaddrinfo); without capabilities nothing can be changed.
    let route = vec![is(0, AF_NETLINK), is(2, 0)];
    match profile.sockets {
        Sockets::PairsOnly | Sockets::InstallerPairsOnly => Rule::AnyOf(vec![]),
        Sockets::PrivateNamespace => Rule::AnyOf(
            [
                unix,
                vec![
                    [stream(AF_INET), vec![is(2, 0)]].concat(),
                    [stream(AF_INET), vec![is(2, IPPROTO_TCP)]].concat(),
                    [stream(AF_INET6), vec![is(2, 0)]].concat(),
                    [stream(AF_INET6), vec![is(2, IPPROTO_TCP)]].concat(),
                    datagram(AF_INET, 0),
                    datagram(AF_INET, IPPROTO_UDP),
                    datagram(AF_INET6, 0),
                    datagram(AF_INET6, IPPROTO_UDP),
                    route,
                ],
            ]
            .concat(),
        ),
    }
}

fn socketpair_rule() -> Rule {
    // A datagram pair can still be sent to a named socket of the host; streams can't.
    Rule::AnyOf(vec![
        vec![is(0, AF_UNIX), bits(1, TYPE_MASK, SOCK_STREAM as u32)],
        vec![is(0, AF_UNIX), bits(1, TYPE_MASK, SOCK_SEQPACKET as u32)],
    ])
}

/// A row: number, name, rule, reason.
pub(super) type Row = (c_long, &'static str, Rule, &'static str);

/// The whole list for a profile.
pub(super) fn rules(profile: Profile) -> Vec<Row> {
    let mut rows = conditional(profile);
    // Without mounts nothing else keeps a skill from changing the host's files so.
    let attributes = match profile.sockets {
        Sockets::PairsOnly => None,
        Sockets::PrivateNamespace if profile.watch => Some(Rule::Watch),
        Sockets::PrivateNamespace | Sockets::InstallerPairsOnly => Some(Rule::Allow),
    };
    for group in PLAIN {
        let rule = match group.reason {
            ATTRIBUTES => attributes.clone(),
            _ => Some(Rule::Allow),
        };
        let Some(rule) = rule else { continue };
        rows.extend(
            group
                .calls
                .iter()
                .map(|(nr, name)| (*nr, *name, rule.clone(), group.reason)),
        );
    }
    #[cfg(target_arch = "x86_64")]
    {
        let reason = "older spelling of an allowed call, used by libc on x86_64";
        let row = |(nr, name): &(c_long, &'static str), rule| (*nr, *name, rule, reason);
        rows.extend(LEGACY.iter().map(|call| row(call, Rule::Allow)));
        if let Some(rule) = attributes {
            rows.extend(LEGACY_ATTRIBUTES.iter().map(|call| row(call, rule.clone())));
        }
        let fork = if profile.count_forks {
            Rule::Watch
        } else {
            Rule::Allow
        };
        rows.push((SYS_fork, "fork", fork.clone(), reason));
        rows.push((SYS_vfork, "vfork", fork, reason));
    }
    rows
}

/// Calls whose arguments decide, or that are reported.
fn conditional(profile: Profile) -> Vec<Row> {
    let watch = |rule: Rule| if profile.watch { rule } else { Rule::Allow };
    let connects = match profile.sockets {
        Sockets::PairsOnly | Sockets::InstallerPairsOnly => Rule::AnyOf(vec![]),
        Sockets::PrivateNamespace => watch(Rule::Watch),
    };
    let sends = match profile.sockets {
        Sockets::PairsOnly | Sockets::InstallerPairsOnly => Rule::Allow,
        Sockets::PrivateNamespace => watch(Rule::Watch),
    };
    let mut rows: Vec<Row> = vec![
        (
            SYS_openat,
            "openat",
            watch(Rule::WatchBits {
                arg: 2,
                mask: WRITE_FLAGS,
            }),
            "opens files; opening for writing is reported",
        ),
        (
            SYS_mkdirat,
            "mkdirat",
            watch(Rule::Watch),
            "makes folders in scratch; elsewhere it is reported",
        ),
        (
            SYS_unlinkat,
            "unlinkat",
            watch(Rule::Watch),
            "removes files in scratch; elsewhere it is reported",
        ),
        (
            SYS_renameat2,
            "renameat2",
            watch(Rule::Watch),
            "renames in scratch; elsewhere it is reported",
        ),
        (
            SYS_symlinkat,
            "symlinkat",
            watch(Rule::Watch),
            "links in scratch; elsewhere it is reported",
        ),
        (
            SYS_linkat,
            "linkat",
            watch(Rule::Watch),
            "links in scratch; elsewhere it is reported",
        ),
        (
            SYS_ioctl,
            "ioctl",
            Rule::AnyOf(
                IOCTLS
                    .iter()
                    .map(|c| {
                        vec![Test {
                            arg: 1,
                            mask: u32::MAX,
                            equals: *c as u32,
                        }]
                    })
                    .collect(),
            ),
            "terminal size, bytes to read, non-blocking mode; never TIOCSTI or device control",
        ),
        (
            SYS_truncate,
            "truncate",
            watch(Rule::Watch),
            "shortens files in scratch; elsewhere it is reported",
        ),
        (
            SYS_clone,
            "clone",
            clone_rule(profile),
            "threads and processes, never new namespaces",
        ),
        (
            SYS_clone3,
            "clone3",
            Rule::Absent,
            "its flags lie in memory where a filter can't see them; libc falls back to clone",
        ),
        (
            SYS_openat2,
            "openat2",
            Rule::Absent,
            "its flags lie in memory where a filter can't see them; callers fall back to openat",
        ),
        (
            SYS_socket,
            "socket",
            socket_rule(profile),
            "unix, TCP and UDP in a private namespace; no raw, packet, vsock or other families",
        ),
        (
            SYS_socketpair,
            "socketpair",
            socketpair_rule(),
            "pipes in both directions (asyncio, subprocess)",
        ),
        (
            SYS_connect,
            "connect",
            connects.clone(),
            "loopback inside the cell; elsewhere it leads nowhere and is reported",
        ),
        (
            SYS_sendto,
            "sendto",
            match profile.sockets {
                Sockets::PrivateNamespace => watch(Rule::WatchBits {
                    arg: 5,
                    mask: 0xffff,
                }),
                Sockets::PairsOnly | Sockets::InstallerPairsOnly => Rule::Allow,
            },
            "sends on a socket; a datagram to a named address is reported",
        ),
        (
            SYS_sendmsg,
            "sendmsg",
            sends.clone(),
            "sends on a socket; whether to a named address lies in memory, so each is reported",
        ),
        (SYS_sendmmsg, "sendmmsg", sends, "several of sendmsg"),
        (
            SYS_personality,
            "personality",
            Rule::AnyOf(vec![vec![is(0, 0)], vec![is(0, -1)]]),
            "asks for the personality; never changes it",
        ),
        (
            SYS_mknodat,
            "mknodat",
            Rule::AnyOf(vec![
                vec![bits(2, S_IFMT, S_IFIFO)],
                vec![bits(2, S_IFMT, S_IFREG)],
            ]),
            "named pipes in scratch; no devices",
        ),
        (
            SYS_prctl,
            "prctl",
            prctl_rule(),
            "thread names and death signals; nothing that weakens the process",
        ),
    ];
    if profile.ownerless_memory == OwnerlessMemory::Counted {
        rows.push((
            SYS_memfd_create,
            "memfd_create",
            Rule::Allow,
            "files in memory, which the cgroup counts",
        ));
    }
    if !profile.pin_affinity {
        rows.push((
            SYS_sched_setaffinity,
            "sched_setaffinity",
            Rule::Allow,
            "thread pools pin their workers",
        ));
    }
    #[cfg(target_arch = "x86_64")]
    rows.extend([
        (
            SYS_open,
            "open",
            watch(Rule::WatchBits {
                arg: 1,
                mask: WRITE_FLAGS,
            }),
            "older spelling of openat",
        ),
        (
            SYS_creat,
            "creat",
            watch(Rule::Watch),
            "older spelling of openat",
        ),
        (
            SYS_mkdir,
            "mkdir",
            watch(Rule::Watch),
            "older spelling of mkdirat",
        ),
        (
            SYS_unlink,
            "unlink",
            watch(Rule::Watch),
            "older spelling of unlinkat",
        ),
        (
            SYS_rmdir,
            "rmdir",
            watch(Rule::Watch),
            "older spelling of unlinkat",
        ),
        (
            SYS_rename,
            "rename",
            watch(Rule::Watch),
            "older spelling of renameat2",
        ),
        (
            SYS_renameat,
            "renameat",
            watch(Rule::Watch),
            "older spelling of renameat2",
        ),
        (
            SYS_symlink,
            "symlink",
            watch(Rule::Watch),
            "older spelling of symlinkat",
        ),
        (
            SYS_link,
            "link",
            watch(Rule::Watch),
            "older spelling of linkat",
        ),
        (
            SYS_mknod,
            "mknod",
            Rule::AnyOf(vec![
                vec![bits(1, S_IFMT, S_IFIFO)],
                vec![bits(1, S_IFMT, S_IFREG)],
            ]),
            "named pipes in scratch; no devices",
        ),
    ]);
    rows
}

/// New processes and threads; counted by the supervisor where nothing else counts. Its flags are in a
/// register, so what the supervisor sees is what the kernel does.
fn clone_rule(profile: Profile) -> Rule {
    if profile.count_forks {
        Rule::Watch
    } else {
        Rule::AnyOf(vec![vec![bits(0, NAMESPACE_FLAGS, 0)]])
    }
}

fn prctl_rule() -> Rule {
    // PR_SET_SECCOMP, PR_SET_MM, PR_SET_PTRACER and unknown options stay out. So does making itself
    // unreadable: the record would have no names of what it opens.
    let readable = vec![is(0, PR_SET_DUMPABLE), is(1, 1)];
    let options = [
        PR_SET_PDEATHSIG,
        PR_GET_PDEATHSIG,
        PR_GET_DUMPABLE,
        PR_GET_KEEPCAPS,
        PR_SET_NAME,
        PR_GET_NAME,
        PR_GET_SECCOMP,
        PR_CAPBSET_READ,
        PR_GET_TSC,
        PR_GET_SECUREBITS,
        PR_SET_TIMERSLACK,
        PR_GET_TIMERSLACK,
        PR_SET_CHILD_SUBREAPER,
        PR_GET_CHILD_SUBREAPER,
        PR_SET_NO_NEW_PRIVS,
        PR_GET_NO_NEW_PRIVS,
        PR_GET_TID_ADDRESS,
        PR_SET_THP_DISABLE,
        PR_GET_THP_DISABLE,
        PR_CAP_AMBIENT,
        PR_GET_SPECULATION_CTRL,
        PR_SET_VMA,
    ];
    let plain = options.iter().map(|o| vec![is(0, *o)]);
    Rule::AnyOf(plain.chain([readable]).collect())
}

struct Group {
    reason: &'static str,
    calls: &'static [(c_long, &'static str)],
}

macro_rules! calls {
    ($($call:ident $name:literal),* $(,)?) => { &[$(($call, $name)),*] };
}

const ATTRIBUTES: &str = "changes attributes of the skill's own files; elsewhere it is reported";

const PLAIN: &[Group] = &[
    Group {
        reason: "reads and writes open files",
        calls: calls![
        SYS_read "read", SYS_write "write", SYS_readv "readv", SYS_writev "writev", SYS_pread64 "pread64",
        SYS_pwrite64 "pwrite64", SYS_preadv "preadv", SYS_pwritev "pwritev", SYS_preadv2 "preadv2", SYS_pwritev2 "pwritev2",
        SYS_lseek "lseek", SYS_close "close", SYS_close_range "close_range", SYS_dup "dup", SYS_dup3 "dup3", SYS_fcntl "fcntl",
        SYS_flock "flock", SYS_fsync "fsync", SYS_fdatasync "fdatasync", SYS_sync_file_range "sync_file_range",
        SYS_ftruncate "ftruncate", SYS_fallocate "fallocate", SYS_fadvise64 "fadvise64",
        SYS_readahead "readahead", SYS_sendfile "sendfile", SYS_copy_file_range "copy_file_range", SYS_splice "splice", SYS_tee "tee",
        SYS_pipe2 "pipe2", ],
    },
    Group {
        reason: "looks at files; what exists is decided by the mounts",
        calls: calls![
        SYS_fstat "fstat", SYS_newfstatat "newfstatat", SYS_statx "statx", SYS_statfs "statfs", SYS_fstatfs "fstatfs",
        SYS_faccessat "faccessat", SYS_faccessat2 "faccessat2", SYS_readlinkat "readlinkat", SYS_getdents64 "getdents64",
        SYS_getcwd "getcwd", SYS_chdir "chdir", SYS_fchdir "fchdir", SYS_umask "umask", SYS_inotify_init1 "inotify_init1",
        SYS_inotify_add_watch "inotify_add_watch", SYS_inotify_rm_watch "inotify_rm_watch", SYS_getxattr "getxattr",
        SYS_lgetxattr "lgetxattr", SYS_fgetxattr "fgetxattr", SYS_listxattr "listxattr", SYS_llistxattr "llistxattr",
        SYS_flistxattr "flistxattr" ],
    },
    Group {
        reason: ATTRIBUTES,
        calls: calls![
        SYS_fchmod "fchmod", SYS_fchmodat "fchmodat", SYS_fchmodat2 "fchmodat2", SYS_fchown "fchown", SYS_fchownat "fchownat",
        SYS_utimensat "utimensat", SYS_setxattr "setxattr", SYS_lsetxattr "lsetxattr", SYS_fsetxattr "fsetxattr",
        SYS_removexattr "removexattr", SYS_lremovexattr "lremovexattr", SYS_fremovexattr "fremovexattr" ],
    },
    Group {
        reason: "memory of the process itself",
        calls: calls![
        SYS_mmap "mmap", SYS_munmap "munmap", SYS_mprotect "mprotect", SYS_mremap "mremap", SYS_madvise "madvise", SYS_brk "brk",
        SYS_msync "msync", SYS_mincore "mincore", SYS_mlock "mlock", SYS_mlock2 "mlock2", SYS_munlock "munlock", SYS_mlockall "mlockall",
        SYS_munlockall "munlockall", SYS_membarrier "membarrier", SYS_pkey_alloc "pkey_alloc", SYS_pkey_free "pkey_free",
        SYS_pkey_mprotect "pkey_mprotect", SYS_get_mempolicy "get_mempolicy" ],
    },
    Group {
        reason: "starts and waits for processes of the same call",
        calls: calls![
        SYS_execve "execve", SYS_execveat "execveat", SYS_exit "exit", SYS_exit_group "exit_group", SYS_wait4 "wait4", SYS_waitid "waitid",
        SYS_setsid "setsid", SYS_setpgid "setpgid", SYS_getpgid "getpgid", SYS_getsid "getsid", SYS_getpid "getpid", SYS_getppid "getppid",
        SYS_gettid "gettid", SYS_set_tid_address "set_tid_address", SYS_pidfd_open "pidfd_open", SYS_rseq "rseq",
        SYS_set_robust_list "set_robust_list", SYS_get_robust_list "get_robust_list" ],
    },
    Group {
        reason: "signals; pid namespace or Landlock scope decide who can be reached",
        calls: calls![
        SYS_rt_sigaction "rt_sigaction", SYS_rt_sigprocmask "rt_sigprocmask", SYS_rt_sigreturn "rt_sigreturn",
        SYS_rt_sigpending "rt_sigpending", SYS_rt_sigtimedwait "rt_sigtimedwait", SYS_rt_sigqueueinfo "rt_sigqueueinfo",
        SYS_rt_tgsigqueueinfo "rt_tgsigqueueinfo", SYS_rt_sigsuspend "rt_sigsuspend", SYS_sigaltstack "sigaltstack", SYS_kill "kill",
        SYS_tkill "tkill", SYS_tgkill "tgkill", SYS_pidfd_send_signal "pidfd_send_signal", SYS_signalfd4 "signalfd4",
        SYS_restart_syscall "restart_syscall" ],
    },
    Group {
        reason: "waits for events and locks",
        calls: calls![
        SYS_futex "futex", SYS_futex_waitv "futex_waitv", SYS_ppoll "ppoll", SYS_pselect6 "pselect6", SYS_epoll_create1 "epoll_create1",
        SYS_epoll_ctl "epoll_ctl", SYS_epoll_pwait "epoll_pwait", SYS_epoll_pwait2 "epoll_pwait2", SYS_eventfd2 "eventfd2",
        SYS_timerfd_create "timerfd_create", SYS_timerfd_settime "timerfd_settime", SYS_timerfd_gettime "timerfd_gettime",
        SYS_sched_yield "sched_yield" ],
    },
    Group {
        reason: "reads clocks and sets timers",
        calls: calls![
        SYS_clock_gettime "clock_gettime", SYS_clock_getres "clock_getres", SYS_clock_nanosleep "clock_nanosleep", SYS_nanosleep "nanosleep",
        SYS_gettimeofday "gettimeofday", SYS_times "times", SYS_getitimer "getitimer", SYS_setitimer "setitimer",
        SYS_timer_create "timer_create", SYS_timer_settime "timer_settime", SYS_timer_gettime "timer_gettime",
        SYS_timer_getoverrun "timer_getoverrun", SYS_timer_delete "timer_delete" ],
    },
    Group {
        reason: "asks about the process and its limits",
        calls: calls![
        SYS_uname "uname", SYS_sysinfo "sysinfo", SYS_getrusage "getrusage", SYS_getrlimit "getrlimit", SYS_setrlimit "setrlimit",
        SYS_prlimit64 "prlimit64", SYS_getpriority "getpriority", SYS_setpriority "setpriority", SYS_getcpu "getcpu",
        SYS_sched_getaffinity "sched_getaffinity", SYS_sched_getparam "sched_getparam", SYS_sched_getscheduler "sched_getscheduler",
        SYS_sched_setscheduler "sched_setscheduler", SYS_sched_setparam "sched_setparam", SYS_sched_getattr "sched_getattr",
        SYS_sched_get_priority_max "sched_get_priority_max", SYS_sched_get_priority_min "sched_get_priority_min",
        SYS_getrandom "getrandom", SYS_getuid "getuid", SYS_geteuid "geteuid", SYS_getgid "getgid", SYS_getegid "getegid",
        SYS_getresuid "getresuid", SYS_getresgid "getresgid", SYS_getgroups "getgroups", SYS_capget "capget" ],
    },
    Group {
        reason: "changes ids within what is held, which is nothing: programs that drop privileges don't stumble",
        calls: calls![
        SYS_setuid "setuid", SYS_setgid "setgid", SYS_setresuid "setresuid", SYS_setresgid "setresgid", SYS_setreuid "setreuid",
        SYS_setregid "setregid", SYS_setfsuid "setfsuid", SYS_setfsgid "setfsgid", SYS_setgroups "setgroups", SYS_capset "capset" ],
    },
    Group {
        reason: "uses sockets that socket, socketpair and connect let through",
        calls: calls![
        SYS_bind "bind", SYS_listen "listen", SYS_accept "accept", SYS_accept4 "accept4", SYS_recvfrom "recvfrom",
        SYS_recvmsg "recvmsg", SYS_recvmmsg "recvmmsg", SYS_shutdown "shutdown",
        SYS_getsockname "getsockname", SYS_getpeername "getpeername", SYS_setsockopt "setsockopt", SYS_getsockopt "getsockopt" ],
    },
    Group {
        reason: "restricts the process further; a domain can only shrink",
        calls: calls![
        SYS_landlock_create_ruleset "landlock_create_ruleset", SYS_landlock_add_rule "landlock_add_rule",
        SYS_landlock_restrict_self "landlock_restrict_self" ],
    },
];

/// System V IPC: private where there is an ipc namespace, and so allowed only there.
pub(crate) const SYSV_IPC: &[(c_long, &str)] = calls![
    SYS_shmget "shmget", SYS_shmat "shmat", SYS_shmdt "shmdt", SYS_shmctl "shmctl", SYS_semget "semget", SYS_semop "semop",
    SYS_semtimedop "semtimedop", SYS_semctl "semctl", SYS_msgget "msgget", SYS_msgsnd "msgsnd", SYS_msgrcv "msgrcv", SYS_msgctl "msgctl",
];

#[cfg(target_arch = "x86_64")]
const LEGACY: &[(c_long, &str)] = calls![
    SYS_stat "stat", SYS_lstat "lstat", SYS_access "access", SYS_readlink "readlink", SYS_getdents "getdents", SYS_dup2 "dup2",
    SYS_pipe "pipe", SYS_poll "poll", SYS_select "select", SYS_epoll_create "epoll_create", SYS_epoll_wait "epoll_wait",
    SYS_eventfd "eventfd", SYS_signalfd "signalfd", SYS_inotify_init "inotify_init", SYS_alarm "alarm", SYS_pause "pause", SYS_time "time", SYS_getpgrp "getpgrp", SYS_arch_prctl "arch_prctl",
];

#[cfg(target_arch = "x86_64")]
const LEGACY_ATTRIBUTES: &[(c_long, &str)] = calls![
    SYS_chmod "chmod", SYS_chown "chown", SYS_lchown "lchown", SYS_utime "utime",
    SYS_utimes "utimes", SYS_futimesat "futimesat",
];
