//! Logs for tests: calls with events of every kind, made through the crate's own interface.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use skillcell_audit::{
    Access, CallEnded, CallRefused, CallStarted, Change, ConnectionDecided, Denied, Event,
    FileOpened, Folder, HttpRequest, Log, OnFailure, Recorder, Redactor, Retention, Summary,
    Syscall, Task, Text,
};
use skillcell_core::{
    Adapter, AuditLevel, Control, Denial, DenialKind, Digest, EgressEvent, Enforcement,
    EnforcementStatus, Isolation, Reason, RunId, SkillRef, Status, Usage,
};
use std::collections::BTreeMap;

pub(crate) const SHELL: Task = Task {
    pid: 4001,
    tid: 4001,
    ppid: 4000,
};
pub(crate) const CHILD: Task = Task {
    pid: 4002,
    tid: 4002,
    ppid: 4001,
};
pub(crate) const THREAD: Task = Task {
    pid: 4002,
    tid: 4003,
    ppid: 4001,
};

pub(crate) fn text(word: impl AsRef<[u8]>) -> Text {
    Redactor::default().text(word.as_ref())
}

pub(crate) fn run(n: u64) -> RunId {
    RunId::new(0x0190_0000_0000 + n, 0xfeed_0000_0000_0000 + n)
}

pub(crate) fn recorder(folder: &Folder, retention: Retention, run: RunId) -> Recorder {
    let log = Log::open(folder.clone(), retention).unwrap();
    Recorder::new(Some(log), run, Redactor::default(), OnFailure::End).unwrap()
}

pub(crate) fn started(skill: &str, level: AuditLevel) -> Event {
    let enforced = |control, mechanism: &str, status| Enforcement {
        control,
        mechanism: mechanism.to_owned(),
        status,
    };
    Event::CallStarted(Box::new(CallStarted {
        skill: SkillRef {
            id: Some(skill.to_owned()),
            version: Some("1.2.0".to_owned()),
            digest: Some(digest(7)),
        },
        isolation: Isolation::Sandbox,
        trusted: false,
        plan: digest(9),
        level,
        actor: Some(text("ada@example.com")),
        request_id: Some(text("req-1")),
        enforcement: vec![
            enforced(
                Control::Network,
                "network namespace with a door",
                EnforcementStatus::Enforced,
            ),
            enforced(
                Control::Memory,
                "watched by the supervisor",
                EnforcementStatus::Degraded,
            ),
        ],
        template: None,
    }))
}

fn digest(n: u8) -> Digest {
    Digest::parse(&format!("sha256:{}", format!("{n:02x}").repeat(32))).unwrap()
}

pub(crate) fn ended(status: Status, denials: &[(&str, Reason, u64)]) -> Event {
    Event::CallEnded(Box::new(CallEnded {
        status,
        reason: (status != Status::Ok).then_some(Reason::HostNotAllowed),
        denials: denials
            .iter()
            .map(|(target, reason, count)| Denial {
                kind: DenialKind::Network,
                target: (*target).to_owned(),
                reason: *reason,
                count: *count,
                hint: "network: {egress: […]}".to_owned(),
            })
            .collect(),
        usage: Usage {
            wall_ms: 412,
            cpu_ms: 120,
            peak_memory_bytes: 48 << 20,
            bytes_out: 2_048,
            bytes_in: 1 << 20,
        },
        summary: Summary {
            syscalls: BTreeMap::from([("file".to_owned(), 31), ("network".to_owned(), 4)]),
            programs: 2,
            tasks: 3,
            files_read: 20,
            files_written: 2,
            hosts: 2,
            connections: 2,
            denials: denials.iter().map(|(_, _, n)| n).sum(),
        },
    }))
}

pub(crate) fn opened(path: &str, access: Access) -> Event {
    Event::FileOpened(FileOpened {
        path: text(path),
        access,
        flags: "O_CLOEXEC".to_owned(),
    })
}

pub(crate) fn program(path: &str, argv: &[&str]) -> Event {
    Event::ProcessStarted {
        program: text(path),
        argv: argv.iter().map(text).collect(),
        argc: argv.len() as u64,
    }
}

pub(crate) fn syscall(name: &str, args: &[&str], errno: Option<i32>) -> Syscall {
    Syscall {
        name: name.to_owned(),
        args: args.iter().map(text).collect(),
        errno,
    }
}

pub(crate) fn egress(host: &str, port: Option<u16>, denied: Option<Reason>) -> EgressEvent {
    let adapter = match port {
        None => Adapter::Dns,
        Some(_) => Adapter::Transparent,
    };
    EgressEvent {
        connection: port.map(|_| 1),
        address: port
            .filter(|_| denied.is_none())
            .map(|_| "93.184.216.34".parse().unwrap()),
        rule: denied.is_none().then_some(0),
        denied,
        bytes_out: 320,
        bytes_in: 65_536,
        requests: 1,
        millis: 84,
        inspected: port == Some(443),
        ..EgressEvent::new(adapter, host, port)
    }
}

/// What happens between beginning and end: every kind of event that a call can have.
pub(crate) fn middle() -> Vec<(Option<Task>, Event)> {
    let denied = Some(Reason::HostNotAllowed);
    vec![
        (
            Some(SHELL),
            program("/bin/sh", &["sh", "-c", "python3 main.py"]),
        ),
        (Some(SHELL), opened("/etc/passwd", Access::Read)),
        (
            Some(CHILD),
            program("/usr/bin/python3", &["python3", "main.py"]),
        ),
        (Some(CHILD), opened("/tmp/out/report.csv", Access::Write)),
        (Some(THREAD), opened("/tmp/out/state", Access::ReadWrite)),
        (
            Some(CHILD),
            Event::FileChanged {
                change: Change::Rename,
                path: text("/tmp/out/report.csv"),
                to: Some(text("/tmp/out/final.csv")),
            },
        ),
        (
            Some(CHILD),
            Event::FileChanged {
                change: Change::Remove,
                path: text("/tmp/out/state"),
                to: None,
            },
        ),
        (
            None,
            Event::NameAsked(egress("api.example.com", None, None)),
        ),
        (
            Some(THREAD),
            Event::Connect {
                address: text("198.18.0.1:443"),
            },
        ),
        (
            None,
            Event::ConnectionDecided(ConnectionDecided {
                connection: 1,
                adapter: Adapter::Transparent,
                host: "api.example.com".to_owned(),
                port: Some(443),
                rule: Some(0),
                denied: None,
            }),
        ),
        (
            None,
            Event::HttpRequest(HttpRequest {
                connection: Some(1),
                host: "api.example.com".to_owned(),
                port: 443,
                method: text("GET"),
                path: text("/v1/wallets"),
                denied: None,
            }),
        ),
        (
            None,
            Event::ConnectionEnded(egress("api.example.com", Some(443), None)),
        ),
        (
            None,
            Event::NameAsked(egress("evil.example.net", None, denied)),
        ),
        (
            Some(CHILD),
            Event::Denied(Denied {
                kind: DenialKind::Network,
                target: text("evil.example.net:443"),
                reason: Reason::HostNotAllowed,
                syscall: None,
            }),
        ),
        (
            Some(CHILD),
            Event::Denied(Denied {
                kind: DenialKind::Syscall,
                target: text("ptrace"),
                reason: Reason::SyscallNotAllowed,
                syscall: Some(syscall("ptrace", &["PTRACE_ATTACH", "1"], Some(1))),
            }),
        ),
        (
            Some(CHILD),
            Event::Syscall(syscall(
                "openat",
                &["AT_FDCWD", "\"/usr/lib/libz.so.1\"", "O_RDONLY|O_CLOEXEC"],
                None,
            )),
        ),
        (Some(CHILD), Event::ProcessEnded { code: 0 }),
        (Some(SHELL), Event::ProcessEnded { code: 3 }),
        (None, Event::EgressDropped { count: 12 }),
        (
            None,
            Event::LimitReached {
                reason: Reason::TimeoutExceeded,
            },
        ),
    ]
}

/// The one event of a call that was not begun, because of files that it was not granted.
pub(crate) fn refused(skill: &str, files: &[&str]) -> Event {
    let denial = |file: &&str| Denial {
        kind: DenialKind::Filesystem,
        target: (*file).to_owned(),
        reason: Reason::PathNotGranted,
        count: 1,
        hint: format!("--read {file}"),
    };
    Event::CallRefused(Box::new(CallRefused {
        skill: SkillRef {
            id: Some(skill.to_owned()),
            version: Some("1.2.0".to_owned()),
            digest: Some(digest(7)),
        },
        status: Status::Denied,
        reason: Reason::PathNotGranted,
        denials: files.iter().map(denial).collect(),
        actor: Some(text("ada@example.com")),
        request_id: Some(text("req-2")),
    }))
}

/// A whole call.
pub(crate) fn call(folder: &Folder, n: u64, skill: &str, status: Status) {
    let recorder = recorder(folder, Retention::default(), run(n));
    recorder
        .decide(None, &started(skill, AuditLevel::Full))
        .unwrap();
    for (task, event) in middle() {
        recorder.note(task, &event).unwrap();
    }
    let denials: &[(&str, Reason, u64)] = match status {
        Status::Ok => &[],
        _ => &[
            ("evil.example.net:443", Reason::HostNotAllowed, 2),
            ("ptrace", Reason::SyscallNotAllowed, 1),
        ],
    };
    recorder.finish(&ended(status, denials)).unwrap();
}
