//! `skillcell audit export`

use crate::collector::Collector;
use crate::{audit, cell, log, python, sample};
use serde_json::Value;
use skillcell_tests::{Cell, Child, Outcome, Stage, example, shared};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn export(cell: &Cell, log: &Path, format: &str, more: &[&str]) -> Outcome {
    let arguments = ["--format", format].into_iter().chain(more.iter().copied());
    audit(cell, "export", log, arguments)
}

fn exported(cell: &Cell, log: &Path, format: &str, more: &[&str]) -> String {
    let outcome = export(cell, log, format, more);
    assert_eq!(outcome.code, 0, "{}", outcome.show());
    assert_eq!(outcome.stderr, "", "{}", outcome.show());
    outcome.stdout
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[test]
fn the_lines_of_a_log_come_out_byte_for_byte() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let whole: String = segments(&log).concat();
    assert_eq!(exported(&cell, &log, "jsonl", &[]), whole);
    let one = exported(&cell, &log, "jsonl", &["--run", &sample::FIRST[..12]]);
    let expected: String = whole
        .split_inclusive('\n')
        .filter(|line| line.contains(sample::FIRST))
        .collect();
    assert_eq!(one, expected);
}

fn segments(log: &Path) -> Vec<String> {
    let mut paths: Vec<_> = std::fs::read_dir(log)
        .expect("a log")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .filter(|path| !path.ends_with("checkpoints.jsonl"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("text"))
        .collect()
}

#[test]
fn every_ocsf_event_fits_the_public_models_of_its_class() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let text = exported(&cell, &log, "ocsf", &[]);
    let checked =
        python(&cell, "check_ocsf.py", &text).expect_success("the models accept every event");
    let report: Value = serde_json::from_str(&checked.stdout).expect("a report");
    let classes = |by: &str| -> Vec<u64> {
        let list = report[by].as_array().unwrap_or_else(|| panic!("{report}"));
        list.iter().filter_map(Value::as_u64).collect()
    };
    // Where a model of a class has an error of its own, the rules of the schema are checked alone.
    assert_eq!(classes("py_ocsf_models"), [2004]);
    assert_eq!(
        classes("ocsf_pydantic"),
        [1001, 1003, 1007, 1008, 2004, 4003, 6002]
    );
    assert_eq!(
        classes("rules"),
        [0, 1001, 1003, 1007, 1008, 2004, 4001, 4002, 4003, 6002]
    );
    assert_eq!(report["events"], text.lines().count());
}

/// The counter-proof: the same check refuses events with an error in them.
#[test]
fn the_check_of_ocsf_events_sees_errors() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let events = json_lines(&exported(&cell, &log, "ocsf", &["--run", sample::FIRST]));
    let break_it = |class: u64, change: &dyn Fn(&mut Value)| {
        let mut event = events
            .iter()
            .find(|e| e["class_uid"] == class)
            .unwrap_or_else(|| panic!("no event of class {class}"))
            .clone();
        python(&cell, "check_ocsf.py", &format!("{event}\n")).expect_success("it is right so far");
        change(&mut event);
        let checked = python(&cell, "check_ocsf.py", &format!("{event}\n"));
        assert_ne!(checked.code(), 0, "{event:#} passes");
    };
    break_it(2004, &|e| e["finding_info"]["title"] = Value::Null);
    break_it(2004, &|e| e["severity_id"] = 42.into());
    break_it(1007, &|e| {
        e.as_object_mut().expect("an object").remove("process");
    });
    break_it(4001, &|e| e["type_uid"] = 400_199.into());
    break_it(4002, &|e| {
        e.as_object_mut().expect("an object").remove("http_request");
    });
    break_it(6002, &|e| e["activity_id"] = 77.into());
}

#[test]
fn a_collector_gets_every_trace_over_http() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let collector = Collector::start(&cell, &[200], false);
    let sent = export(&cell, &log, "otlp", &["--endpoint", &collector.url()]);
    assert_eq!(sent.code, 0, "{}", sent.show());
    let requests = collector.finish();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["path"], "/v1/traces");
    assert_eq!(requests[0]["content_type"], "application/json");
    let spans = requests[0]["spans"].as_array().expect("spans");
    let traces: BTreeSet<&str> = spans.iter().filter_map(|s| s["trace"].as_str()).collect();
    for run in [sample::FIRST, sample::SECOND] {
        assert!(traces.contains(format!("0000{run}").as_str()), "{traces:?}");
    }
    assert!(
        sent.stdout.contains(&format!("sent {} spans", spans.len())),
        "{}",
        sent.show()
    );
    let connection = spans
        .iter()
        .find(|s| s["name"] == "connect api.example.com:443")
        .expect("the connection");
    assert_eq!(connection["nanos"], 87_000_000);
    // What is printed without an endpoint is what is sent.
    let printed = json_lines(&exported(&cell, &log, "otlp", &[]));
    assert_eq!(printed.len(), 1);
    assert_eq!(printed[0], requests[0]["body"]);
}

#[test]
fn a_collector_gets_traces_over_https_if_its_certificate_holds() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, |folder| {
        sample::quiet_call(folder, sample::FIRST, "a/b");
    });
    let collector = Collector::start(&cell, &[200], true);
    let send = |trust: Option<&Path>| {
        let mut command = cell.command(Stage::get().binary());
        command
            .args(["audit", "export", "--format", "otlp", "--log"])
            .arg(&log)
            .args(["--endpoint", &collector.url()])
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=s%3Dcret");
        if let Some(path) = trust {
            command.env("SSL_CERT_FILE", path);
        }
        Outcome::new(Child::spawn(command, None).finish())
    };
    let stranger = send(None);
    assert_eq!(stranger.code, 5, "{}", stranger.show());
    let friend = send(Some(&collector.path("ca.pem")));
    assert_eq!(friend.code, 0, "{}", friend.show());
    assert!(!friend.stdout.contains("cret") && !stranger.stderr.contains("cret"));
    let requests = collector.finish();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["api_key"], "s=cret");
}

#[test]
fn a_busy_collector_is_asked_again_and_a_refusal_is_told() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, |folder| {
        sample::quiet_call(folder, sample::FIRST, "a/b");
    });
    let busy = Collector::start(&cell, &[503, 200], false);
    let sent = export(&cell, &log, "otlp", &["--endpoint", &busy.url()]);
    assert_eq!(sent.code, 0, "{}", sent.show());
    assert_eq!(busy.finish().len(), 2);
    let strict = Collector::start(&cell, &[400], false);
    let refused = export(&cell, &log, "otlp", &["--endpoint", &strict.url()]);
    assert_eq!(refused.code, 5, "{}", refused.show());
    assert!(refused.stderr.contains("400"), "{}", refused.show());
    strict.finish();
    // A redirect is not followed: the record goes where the command line says.
    let elsewhere = Collector::start(&cell, &[307], false);
    let moved = export(&cell, &log, "otlp", &["--endpoint", &elsewhere.url()]);
    assert_eq!(moved.code, 5, "{}", moved.show());
    elsewhere.finish();
}

#[test]
fn a_table_parses_with_its_columns_and_holds_no_formula() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let text = exported(&cell, &log, "csv", &[]);
    let checked = python(&cell, "check_table.py", &text).expect_success("the table is one");
    let report: Value = serde_json::from_str(&checked.stdout).expect("a report");
    let lines: usize = segments(&log).concat().lines().count();
    assert_eq!(report["rows"], lines);
    assert_eq!(report["guarded"], 1, "{report}"); // the one path that begins like a formula
}

#[test]
fn rows_for_a_registry_have_its_columns() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let rows = json_lines(&exported(
        &cell,
        &log,
        "skillhub",
        &["--skill", "demo/everything"],
    ));
    let actions: Vec<&str> = rows.iter().filter_map(|r| r["action"].as_str()).collect();
    assert_eq!(actions.first(), Some(&"SKILL_RUN_STARTED"));
    assert_eq!(actions.last(), Some(&"SKILL_RUN"));
    for row in &rows {
        assert_eq!(row["actor_user_id"], "ada@example.com");
        assert_eq!(row["request_id"], "req-42");
        assert_eq!(row["target_type"], "SKILL");
        assert!(row["target_id"].is_null() && row["client_ip"].is_null());
        assert!(
            row["user_agent"]
                .as_str()
                .is_some_and(|a| a.starts_with("skillcell/"))
        );
        assert_eq!(row["detail_json"]["skill"]["id"], "demo/everything");
    }
}

#[test]
fn a_real_call_is_in_every_format() {
    let _shared = shared();
    let cell = cell();
    let code = "import socket\nclass S:\n    def execute(self, params):\n        try:\n            socket.create_connection(('192.0.2.1', 443), timeout=5)\n        except OSError:\n            pass\n        return 1\n";
    let manifest = "name: demo/caller\nversion: 1.0.0\n";
    let skill = cell.bundle("caller", &[("manifest.yaml", manifest), ("skill.py", code)]);
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    outcome.assert_ok();
    let hello = cell
        .call(example("hello"))
        .flags(["--params", "{\"name\":\"x\"}"])
        .run();
    hello.assert_ok();
    let run = outcome.run_id().expect("an id");
    let all = |format: &str| {
        let outcome = cell.skillcell(["audit", "export", "--format", format, "--run", run]);
        assert_eq!(outcome.code, 0, "{}", outcome.show());
        outcome.stdout
    };
    assert_eq!(
        Some(all("jsonl").lines().count() as u64),
        outcome.envelope()["audit"]["events"].as_u64()
    );
    let events = all("ocsf");
    python(&cell, "check_ocsf.py", &events).expect_success("the models accept a real call");
    assert!(
        json_lines(&events).iter().any(|e| e["class_uid"] == 2004),
        "{events}"
    );
    let traces = json_lines(&all("otlp"));
    let spans = &traces[0]["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert!(spans.as_array().is_some_and(|s| !s.is_empty()));
    let table = all("csv");
    python(&cell, "check_table.py", &table).expect_success("the table of a real call is one");
    let rows = json_lines(&all("skillhub"));
    let has = |action: &str| rows.iter().any(|r| r["action"] == action);
    assert!(has("SKILL_RUN"), "{rows:#?}");
    assert!(has("SKILL_EGRESS_DENIED"), "{rows:#?}");
    assert!(
        rows.iter()
            .all(|r| r["request_id"] == run || r["request_id"].is_string())
    );
}

#[test]
fn a_file_is_private_and_replaced_as_a_whole() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let target = cell.file("work/out.jsonl", "old");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).expect("own file");
    let path = target.to_str().expect("text");
    assert_eq!(exported(&cell, &log, "jsonl", &["-o", path]), "");
    let text = std::fs::read_to_string(&target).expect("written");
    assert_eq!(text, segments(&log).concat());
    let mode = target.metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A failure leaves what was there, and nothing beside it.
    let segment = log.join("00000002.jsonl");
    std::fs::remove_file(&segment).expect("own file");
    std::fs::create_dir(&segment).expect("own folder");
    let failed = export(&cell, &log, "jsonl", &["-o", path]);
    assert_eq!(failed.code, 5, "{}", failed.show());
    assert_eq!(std::fs::read_to_string(&target).expect("still there"), text);
    let beside: Vec<_> = std::fs::read_dir(cell.path("work"))
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert_eq!(beside, ["out.jsonl"]);
}

#[test]
fn a_link_or_device_is_not_replaced_by_a_file() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, |folder| {
        sample::quiet_call(folder, sample::FIRST, "a/b");
    });
    let victim = cell.file("work/victim", "precious");
    let link = cell.path("work/link");
    std::os::unix::fs::symlink(&victim, &link).expect("a link");
    for path in [link.to_str().expect("text"), "/dev/null"] {
        let outcome = export(&cell, &log, "jsonl", &["-o", path]);
        assert_eq!(outcome.code, 5, "{}", outcome.show());
    }
    assert_eq!(std::fs::read_to_string(victim).expect("there"), "precious");
    assert!(link.symlink_metadata().expect("there").is_symlink());
}

#[test]
fn what_can_t_be_meant_is_told() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    for (more, words) in [
        (vec!["--run", "ffff"], "no run in"),
        (vec!["--run", "019a"], "more than one run"),
        (vec!["--run", "no-digits"], "not the beginning"),
        (vec!["--since", "yesterday"], "not a moment"),
        (vec!["--endpoint", "http://127.0.0.1:1"], "traces only"),
    ] {
        let outcome = export(&cell, &log, "jsonl", &more);
        assert_eq!(outcome.code, 2, "{}", outcome.show());
        assert!(outcome.stderr.contains(words), "{}", outcome.show());
    }
    let nowhere = export(&cell, &log, "otlp", &["--endpoint", "http://user:pw@host"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.show());
    let closed = export(&cell, &log, "otlp", &["--endpoint", "http://127.0.0.1:1"]);
    assert_eq!(closed.code, 5, "{}", closed.show());
}

#[test]
fn moments_narrow_what_comes_out() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let count = |more: &[&str]| exported(&cell, &log, "jsonl", more).lines().count();
    let all = count(&[]);
    assert_eq!(count(&["--since", "1h"]), all);
    assert_eq!(count(&["--until", "1h"]), 0);
    assert_eq!(count(&["--since", "2999-01-01"]), 0);
    assert_eq!(count(&["--since", "1970-01-01T00:00:00Z"]), all);
}
