//! A log as many calls leave it: some files that everybody opens, many that one call opens, a few
//! hosts, rare denials, and every system call of one call in eight.

use std::path::Path;

use anyhow::{Context as _, Result};
use skillcell_audit::{
    Access, CallEnded, CallStarted, Change, ConnectionDecided, Denied, Event, FileOpened, Folder,
    HttpRequest, Log, OnFailure, Recorder, Redactor, Retention, Summary, Syscall, Task,
};
use skillcell_core::{
    Adapter, AuditLevel, Denial, DenialKind, Digest, EgressEvent, Isolation, Reason, RunId,
    SkillRef, Status, Usage,
};

use super::super::measure::SplitMix;

/// Events of one call, with its beginning and its end.
const PER_CALL: u64 = 100;
const SKILLS: u64 = 40;
/// One in so many calls asks for it.
const RARE: u64 = 500;
pub(super) const RARE_HOST: &str = "exfil.example.net";
pub(super) const RARE_PATH: &str = "/etc/shadow";

pub(super) fn run_id(call: u64) -> RunId {
    RunId::new(
        0x0190_0000_0000 + call,
        call.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    )
}

pub(super) fn skill(n: u64) -> String {
    format!("bench/skill_{:02}", n % SKILLS)
}

/// Writes calls until the log has so many events of them.
pub(super) fn log(folder: &Path, events: u64, seed: u64) -> Result<()> {
    let folder = Folder::at(folder);
    let mut random = SplitMix(seed);
    for call in 0..events.div_ceil(PER_CALL) {
        let log = Log::open(folder.clone(), Retention::default())?;
        let recorder = Recorder::new(Some(log), run_id(call), Redactor::default(), OnFailure::End)?;
        one_call(&recorder, call, &mut random)?;
    }
    Ok(())
}

fn one_call(recorder: &Recorder, call: u64, random: &mut SplitMix) -> Result<()> {
    let rare = call % RARE == 7;
    let level = match call % 8 {
        0 => AuditLevel::Full,
        _ => AuditLevel::Security,
    };
    recorder.decide(None, &started(call, level)?)?;
    let pid = 10_000 + (call % 50_000) as u32;
    let task = Task {
        pid,
        tid: pid,
        ppid: pid - 1,
    };
    for n in 0..PER_CALL - 2 {
        let event = match n {
            0 => program(recorder, "/usr/bin/python3", &["python3", "/skill/main.py"]),
            1 if rare => opened(recorder, RARE_PATH, Access::Read),
            2 if rare => denied(recorder, &format!("{RARE_HOST}:443")),
            _ => any(recorder, call, n, level, random),
        };
        recorder.note(Some(task), &event)?;
    }
    recorder.finish(&ended(call, rare, random))?;
    Ok(())
}

fn any(recorder: &Recorder, call: u64, n: u64, level: AuditLevel, random: &mut SplitMix) -> Event {
    let dice = random.next() % 100;
    if level == AuditLevel::Full && dice < 80 {
        return syscall(recorder, random);
    }
    let host = format!("api{}.example.com", random.next() % 200);
    match dice {
        0..45 => {
            let n = random.next() % 3000;
            let path = format!("/usr/lib/python3/dist-packages/pack{}/mod{n}.py", n % 97);
            opened(recorder, &path, Access::Read)
        }
        45..65 => {
            let path = format!("/tmp/work/{call}/part-{n}.json");
            opened(recorder, &path, Access::Write)
        }
        65..70 => Event::FileChanged {
            change: Change::Rename,
            path: recorder.text(format!("/tmp/work/{call}/part-{n}.tmp").as_bytes()),
            to: Some(recorder.text(format!("/tmp/work/{call}/part-{n}.json").as_bytes())),
        },
        70..75 => {
            let input = format!("--input=/tmp/work/{call}/part-{n}.json");
            program(recorder, "/usr/bin/jq", &["jq", "-r", ".rows[]", &input])
        }
        75..82 => Event::NameAsked(EgressEvent::new(Adapter::Dns, host, None)),
        82..88 => Event::ConnectionDecided(ConnectionDecided {
            connection: n,
            adapter: Adapter::Transparent,
            host,
            port: Some(443),
            rule: Some(0),
            denied: None,
        }),
        88..94 => Event::HttpRequest(HttpRequest {
            connection: Some(n),
            host,
            port: 443,
            method: recorder.text(b"GET"),
            path: recorder.text(format!("/v1/accounts/{}", random.next() % 100_000).as_bytes()),
            denied: None,
        }),
        94..98 => Event::ConnectionEnded(EgressEvent::new(Adapter::Transparent, host, Some(443))),
        98 => denied(recorder, &format!("tracker{}.example.org:443", call % 50)),
        _ => Event::ProcessEnded { code: 0 },
    }
}

fn started(call: u64, level: AuditLevel) -> Result<Event> {
    let digest = Digest::parse(&format!("sha256:{}", "0a".repeat(32))).context("not a digest")?;
    Ok(Event::CallStarted(Box::new(CallStarted {
        skill: SkillRef {
            id: Some(skill(call)),
            version: Some("1.0.0".to_owned()),
            digest: Some(digest.clone()),
        },
        isolation: Isolation::Sandbox,
        trusted: false,
        plan: digest,
        level,
        actor: None,
        request_id: None,
        enforcement: Vec::new(),
        template: None,
    })))
}

fn ended(call: u64, rare: bool, random: &mut SplitMix) -> Event {
    let status = match call % 20 {
        _ if rare => Status::Denied,
        3 => Status::SkillError,
        _ => Status::Ok,
    };
    Event::CallEnded(Box::new(CallEnded {
        status,
        reason: rare.then_some(Reason::HostNotAllowed),
        denials: rare
            .then(|| Denial {
                kind: DenialKind::Network,
                target: format!("{RARE_HOST}:443"),
                reason: Reason::HostNotAllowed,
                count: 1,
                hint: String::new(),
            })
            .into_iter()
            .collect(),
        usage: Usage {
            wall_ms: 20 + random.next() % 400,
            ..Usage::default()
        },
        summary: Summary::default(),
    }))
}

fn opened(recorder: &Recorder, path: &str, access: Access) -> Event {
    Event::FileOpened(FileOpened {
        path: recorder.text(path.as_bytes()),
        access,
        flags: "O_CLOEXEC".to_owned(),
    })
}

fn program(recorder: &Recorder, program: &str, argv: &[&str]) -> Event {
    Event::ProcessStarted {
        program: recorder.text(program.as_bytes()),
        argv: argv.iter().map(|a| recorder.text(a.as_bytes())).collect(),
        argc: argv.len() as u64,
    }
}

fn denied(recorder: &Recorder, target: &str) -> Event {
    Event::Denied(Denied {
        kind: DenialKind::Network,
        target: recorder.text(target.as_bytes()),
        reason: Reason::HostNotAllowed,
        syscall: None,
    })
}

fn syscall(recorder: &Recorder, random: &mut SplitMix) -> Event {
    let text = |word: String| recorder.text(word.as_bytes());
    let number = random.next();
    let (name, args) = match number % 5 {
        0 => (
            "openat",
            vec![
                text("AT_FDCWD".to_owned()),
                text(format!("\"/usr/lib/lib{}.so\"", number % 400)),
                text("O_RDONLY|O_CLOEXEC".to_owned()),
            ],
        ),
        1 => ("read", vec![text("3".into()), text(format!("{number:#x}"))]),
        2 => ("mmap", vec![text("NULL".into()), text("8192".into())]),
        3 => ("close", vec![text((number % 30).to_string())]),
        _ => ("futex", vec![text(format!("{number:#x}"))]),
    };
    Event::Syscall(Syscall {
        name: name.to_owned(),
        args,
        errno: None,
    })
}
