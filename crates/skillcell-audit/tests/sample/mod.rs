//! Logs with events of every kind, and with the worst words that a skill could choose. Written through
//! the crate's own recorder, so verifiable like any other.

#![allow(dead_code, reason = "each suite takes what it needs")]

use skillcell_audit::{
    Access, CallEnded, CallRefused, CallStarted, Change, ConnectionDecided, Denied, Event,
    FileOpened, Folder, HttpRequest, Log, OnFailure, Recorder, Redactor, Retention, Summary,
    Syscall, Task,
};
use skillcell_core::{
    Adapter, AuditLevel, Control, Denial, DenialKind, Digest, EgressEvent, Enforcement,
    EnforcementStatus, Isolation, Reason, RunId, SkillRef, Status, Usage,
};
use std::io::Write;

/// What a program, a file or a host may be called.
pub(crate) const HOSTILE: &str = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u{1b}[2J\u{202e}gpj.exe\u{9b}31m&amp;\"'";
/// What a spreadsheet would execute.
pub(crate) const FORMULA: &str = "=HYPERLINK(\"http://evil.example\",\"x\")";

pub(crate) const FIRST: &str = "019a97d0c7f800112233445566aa";
pub(crate) const SECOND: &str = "019a97d0c80000112233445566bb";
pub(crate) const REFUSED: &str = "019a97d0c81000112233445566ee";

pub(crate) fn run(id: &str) -> RunId {
    RunId::parse(id).expect("an id")
}

pub(crate) fn recorder(folder: &Folder, id: &str) -> Recorder {
    let log = Log::open(folder.clone(), Retention::default()).expect("a log");
    Recorder::new(Some(log), run(id), Redactor::default(), OnFailure::End).expect("a recorder")
}

pub(crate) fn started(recorder: &Recorder, skill: &str) -> Event {
    Event::CallStarted(Box::new(CallStarted {
        skill: SkillRef {
            id: Some(skill.to_owned()),
            version: Some("1.2.3".to_owned()),
            digest: Some(Digest::sha256(&[7; 32])),
        },
        isolation: Isolation::Sandbox,
        trusted: false,
        plan: Digest::sha256(&[9; 32]),
        level: AuditLevel::Full,
        actor: Some(recorder.text(b"ada@example.com")),
        request_id: Some(recorder.text(b"req-42")),
        enforcement: vec![
            Enforcement {
                control: Control::Network,
                mechanism: "a network namespace with nothing but the door".to_owned(),
                status: EnforcementStatus::Enforced,
            },
            Enforcement {
                control: Control::Cpu,
                mechanism: "watched by the supervisor".to_owned(),
                status: EnforcementStatus::Degraded,
            },
        ],
        template: None,
    }))
}

pub(crate) fn ended(status: Status, reason: Option<Reason>, denials: Vec<Denial>) -> Event {
    Event::CallEnded(Box::new(CallEnded {
        status,
        reason,
        denials,
        usage: Usage {
            wall_ms: 1234,
            cpu_ms: 310,
            peak_memory_bytes: 48 << 20,
            bytes_out: 2048,
            bytes_in: 1 << 20,
        },
        summary: Summary {
            syscalls: [("file".to_owned(), 120), ("network".to_owned(), 14)].into(),
            programs: 2,
            tasks: 3,
            files_read: 9,
            files_written: 2,
            hosts: 2,
            connections: 2,
            denials: 4,
        },
    }))
}

const PYTHON: Task = Task {
    pid: 4001,
    tid: 4001,
    ppid: 4000,
};
const SHELL: Task = Task {
    pid: 4002,
    tid: 4002,
    ppid: 4001,
};

/// Everything between the beginning and the end of a call, at least once.
pub(crate) fn middle(recorder: &Recorder) -> Vec<(Option<Task>, Event)> {
    let text = |words: &str| recorder.text(words.as_bytes());
    let program = |program: &str, argv: &[&str]| Event::ProcessStarted {
        program: text(program),
        argv: argv.iter().map(|a| text(a)).collect(),
        argc: argv.len() as u64,
    };
    let open = |path: &str, access, flags: &str| {
        Event::FileOpened(FileOpened {
            path: text(path),
            access,
            flags: flags.to_owned(),
        })
    };
    let change = |change, path: &str, to: Option<&str>| Event::FileChanged {
        change,
        path: text(path),
        to: to.map(text),
    };
    let mut name = EgressEvent::new(Adapter::Dns, "api.example.com", None);
    name.address = Some([198, 51, 100, 7].into());
    name.rule = Some(0);
    let mut denied_name = EgressEvent::new(Adapter::Dns, "evil.example", None);
    denied_name.denied = Some(Reason::HostNotAllowed);
    let decided = |connection, host: &str, denied| {
        Event::ConnectionDecided(ConnectionDecided {
            connection,
            adapter: Adapter::Transparent,
            host: host.to_owned(),
            port: Some(443),
            rule: Some(0),
            denied,
        })
    };
    let over = |connection, host: &str, denied| {
        let mut ended = EgressEvent::new(Adapter::Transparent, host, Some(443));
        ended.connection = Some(connection);
        ended.denied = denied;
        if denied.is_none() {
            ended.address = Some([198, 51, 100, 7].into());
            ended.bytes_out = 2048;
            ended.bytes_in = 1 << 20;
            ended.requests = 2;
            ended.millis = 87;
            ended.inspected = true;
        }
        Event::ConnectionEnded(ended)
    };
    let request = |method: &str, denied| {
        Event::HttpRequest(HttpRequest {
            connection: Some(1),
            host: "api.example.com".to_owned(),
            port: 443,
            method: text(method),
            path: text("/v1/items"),
            denied,
        })
    };
    let deny = |kind, target: &str, reason, syscall| {
        Event::Denied(Denied {
            kind,
            target: text(target),
            reason,
            syscall,
        })
    };
    let syscall = |name: &str, args: &[&str], errno| Syscall {
        name: name.to_owned(),
        args: args.iter().map(|a| text(a)).collect(),
        errno,
    };
    let python = Some(PYTHON);
    let shell = Some(SHELL);
    vec![
        (
            python,
            program("/usr/bin/python3", &["python3", "/skill/skill.py"]),
        ),
        (
            python,
            open("/skill/skill.py", Access::Read, "O_RDONLY|O_CLOEXEC"),
        ),
        (python, open("/etc/passwd", Access::Read, "O_RDONLY")),
        (shell, program("/bin/sh", &["sh", "-c", HOSTILE])),
        (
            shell,
            open(HOSTILE, Access::Write, "O_WRONLY|O_CREAT|O_TRUNC"),
        ),
        (shell, open("/tmp/both", Access::ReadWrite, "O_RDWR")),
        (shell, change(Change::Truncate, "/tmp/a", None)),
        (shell, change(Change::Remove, "/tmp/a", None)),
        (shell, change(Change::Rename, "/tmp/b", Some(HOSTILE))),
        (shell, change(Change::MakeFolder, "/tmp/dir", None)),
        (shell, change(Change::Link, "/tmp/l", Some("/tmp/b"))),
        (
            shell,
            change(Change::Symlink, "/tmp/s", Some("/etc/shadow")),
        ),
        (shell, change(Change::MakeNode, "/tmp/fifo", None)),
        (shell, change(Change::Attributes, FORMULA, None)),
        (shell, Event::ProcessEnded { code: 3 }),
        (
            python,
            Event::Connect {
                address: text("198.18.0.1:443"),
            },
        ),
        (
            python,
            Event::Connect {
                address: text("unix:/run/x.sock"),
            },
        ),
        (None, Event::NameAsked(name)),
        (None, Event::NameAsked(denied_name)),
        (None, decided(1, "api.example.com", None)),
        (None, request("GET", None)),
        (None, request("PATCH", None)),
        (None, request("DELETE", Some(Reason::HttpRequestNotAllowed))),
        (None, over(1, "api.example.com", None)),
        (
            None,
            decided(2, "2001:db8::1", Some(Reason::AddressNotPublic)),
        ),
        (None, over(2, "2001:db8::1", Some(Reason::AddressNotPublic))),
        (None, Event::EgressDropped { count: 3 }),
        (
            python,
            deny(
                DenialKind::Filesystem,
                HOSTILE,
                Reason::PathNotWritable,
                None,
            ),
        ),
        (
            python,
            deny(
                DenialKind::Syscall,
                "ptrace",
                Reason::SyscallNotAllowed,
                Some(syscall("ptrace", &["PTRACE_ATTACH", "1"], Some(1))),
            ),
        ),
        (
            python,
            deny(
                DenialKind::Process,
                "clone",
                Reason::ProcessesExceeded,
                None,
            ),
        ),
        (
            python,
            deny(DenialKind::Env, "AWS_KEY", Reason::EnvNotDeclared, None),
        ),
        (
            python,
            deny(
                DenialKind::Network,
                "AF_PACKET",
                Reason::NetworkNotAllowed,
                None,
            ),
        ),
        (
            python,
            Event::Syscall(syscall("openat", &["AT_FDCWD", "/etc/hosts"], None)),
        ),
        (
            python,
            Event::LimitReached {
                reason: Reason::MemoryExceeded,
            },
        ),
    ]
}

/// Denials of the end: two that events told of before, and one that only the end knows.
pub(crate) fn denials() -> Vec<Denial> {
    let denial = |kind, target: &str, reason, hint: &str| Denial {
        kind,
        target: target.to_owned(),
        reason,
        count: 2,
        hint: hint.to_owned(),
    };
    vec![
        denial(
            DenialKind::Network,
            "evil.example",
            Reason::HostNotAllowed,
            "allow it: network.egress: [{domains: [evil.example]}]",
        ),
        denial(
            DenialKind::Syscall,
            "ptrace",
            Reason::SyscallNotAllowed,
            "no skill may do this",
        ),
        denial(
            DenialKind::Filesystem,
            "/work/left.txt",
            Reason::OutputNotGranted,
            "allow it: --write /work/left.txt",
        ),
    ]
}

/// A call with everything in it.
pub(crate) fn full_call(folder: &Folder, id: &str, skill: &str) {
    let recorder = recorder(folder, id);
    recorder
        .decide(None, &started(&recorder, skill))
        .expect("recorded");
    for (task, event) in middle(&recorder) {
        recorder.note(task, &event).expect("recorded");
    }
    let end = ended(
        Status::LimitExceeded,
        Some(Reason::MemoryExceeded),
        denials(),
    );
    recorder.finish(&end).expect("recorded");
}

/// A call in which nothing happens.
pub(crate) fn quiet_call(folder: &Folder, id: &str, skill: &str) {
    let recorder = recorder(folder, id);
    recorder
        .decide(None, &started(&recorder, skill))
        .expect("recorded");
    recorder
        .finish(&ended(Status::Ok, None, Vec::new()))
        .expect("recorded");
}

/// A call that was not begun, because of a file that it was not granted.
pub(crate) fn refused_call(folder: &Folder, id: &str, skill: &str) {
    let recorder = recorder(folder, id);
    let refused = Event::CallRefused(Box::new(CallRefused {
        skill: SkillRef {
            id: Some(skill.to_owned()),
            version: Some("1.2.3".to_owned()),
            digest: Some(Digest::sha256(&[7; 32])),
        },
        status: Status::Denied,
        reason: Reason::PathNotGranted,
        denials: vec![Denial {
            kind: DenialKind::Filesystem,
            target: format!("/work/{HOSTILE}"),
            reason: Reason::PathNotGranted,
            count: 1,
            hint: "allow it: --read PATH".to_owned(),
        }],
        actor: Some(recorder.text(b"ada@example.com")),
        request_id: Some(recorder.text(b"req-43")),
    }));
    recorder.finish(&refused).expect("recorded");
}

/// A log with every kind of event, those of the log itself included.
pub(crate) fn every_kind(folder: &Folder) {
    quiet_call(folder, "019a97d0c7f000112233445566cc", "old/skill");
    // A new segment for each batch, and the old one gone.
    let tiny = Retention {
        segment_bytes: 1,
        ..Retention::default()
    };
    let log = Log::open(folder.clone(), tiny).expect("a log");
    let recorder = Recorder::new(
        Some(log),
        run("019a97d0c7f400112233445566dd"),
        Redactor::default(),
        OnFailure::End,
    )
    .expect("a recorder");
    recorder
        .finish(&ended(Status::Ok, None, Vec::new()))
        .expect("recorded");
    drop(recorder);
    let keep = Retention {
        keep_bytes: Some(1),
        ..Retention::default()
    };
    Log::open(folder.clone(), Retention::default())
        .and_then(|mut log| log.prune(&keep))
        .expect("pruned");
    // A writer that was stopped in the middle of a line.
    let active = folder.segments().expect("segments").pop().expect("one");
    std::fs::OpenOptions::new()
        .append(true)
        .open(active.path)
        .and_then(|mut file| file.write_all(b"{\"seq\":99,\"half"))
        .expect("appended");
    full_call(folder, FIRST, "demo/everything");
    quiet_call(folder, SECOND, "demo/quiet");
    refused_call(folder, REFUSED, "demo/refused");
}
