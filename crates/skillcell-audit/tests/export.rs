//! Exports of a log that has every kind of event.

#![allow(clippy::expect_used, reason = "a test that fails may panic")]

mod sample;

use serde_json::Value;
use skillcell_audit::export::{
    self, Filter, Found, Selection, csv, find_run, ocsf, otlp, skillhub,
};
use skillcell_audit::report::{Checked, Report};
use skillcell_audit::{Event, Expectation, Folder};
use skillcell_core::Status;
use std::collections::{BTreeMap, BTreeSet};

struct Logged {
    folder: Folder,
    _dir: tempfile::TempDir,
}

fn logged(write: impl FnOnce(&Folder)) -> Logged {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::at(dir.path().join("audit"));
    write(&folder);
    Logged { folder, _dir: dir }
}

/// What `each` makes of every wanted event.
fn collect<T>(
    folder: &Folder,
    filter: Filter,
    mut each: impl FnMut(&export::Entry<'_>) -> Vec<T>,
) -> Vec<T> {
    let mut selection = Selection::new(folder, filter).expect("a log");
    let mut all = Vec::new();
    while let Some(selected) = selection.next().expect("readable") {
        all.extend(each(&selected.entry.expect("a known event")));
    }
    assert_eq!(selection.unreadable(), 0);
    all
}

fn of_run(id: &str) -> Filter {
    Filter {
        run: Some(sample::run(id)),
        ..Filter::default()
    }
}

#[test]
fn the_sample_has_every_kind_of_event_and_is_whole() {
    let log = logged(sample::every_kind);
    let kinds: BTreeSet<&str> = collect(&log.folder, Filter::default(), |entry| {
        vec![export::kind(&entry.record.event)]
    })
    .into_iter()
    .collect();
    assert_eq!(kinds.len(), Event::KINDS.len(), "{kinds:?}");
    skillcell_audit::verify(&log.folder, &Expectation::default())
        .expect("readable")
        .expect("whole");
}

#[test]
fn kinds_are_the_words_of_the_log() {
    let log = logged(sample::every_kind);
    let mut selection = Selection::new(&log.folder, Filter::default()).expect("a log");
    while let Some(selected) = selection.next().expect("readable") {
        let line: Value = serde_json::from_slice(selected.line).expect("JSON");
        let entry = selected.entry.expect("known");
        assert_eq!(line["event"], export::kind(&entry.record.event));
    }
}

#[test]
fn filters_hold_together() {
    let log = logged(sample::every_kind);
    let count = |filter| collect(&log.folder, filter, |_| vec![()]).len();
    let all = count(Filter::default());
    let one = count(of_run(sample::SECOND));
    assert_eq!(one, 2);
    let skill = |id: &str| Filter {
        skill: Some(id.to_owned()),
        ..Filter::default()
    };
    assert_eq!(count(skill("demo/quiet")), 2);
    assert!(count(skill("demo/everything")) > 30);
    assert_eq!(count(skill("quiet")), 0);
    let at = collect(&log.folder, of_run(sample::SECOND), |e| {
        vec![e.record.unix_us]
    })[0];
    let since = |us| Filter {
        since_us: Some(us),
        ..Filter::default()
    };
    let until = |us| Filter {
        until_us: Some(us),
        ..Filter::default()
    };
    assert_eq!(count(since(at)) + count(until(at)), all);
    assert_eq!(count(since(u64::MAX)), 0);
    assert_eq!(
        count(Filter {
            skill: Some("demo/everything".to_owned()),
            ..of_run(sample::SECOND)
        }),
        0
    );
}

#[test]
fn a_run_is_found_by_its_first_digits() {
    let log = logged(sample::every_kind);
    let find = |prefix: &str| find_run(&log.folder, prefix).expect("readable");
    assert_eq!(find(sample::FIRST), Found::One(sample::run(sample::FIRST)));
    assert_eq!(find("019a97d0c80"), Found::One(sample::run(sample::SECOND)));
    assert!(matches!(find("019a"), Found::Several(..)));
    assert_eq!(find("ff"), Found::None);
}

#[test]
fn a_denial_is_told_once() {
    let log = logged(|folder| sample::full_call(folder, sample::FIRST, "a/b"));
    let told = collect(&log.folder, Filter::default(), |entry| {
        entry.refused.to_vec()
    });
    let mut targets: BTreeMap<(String, String), usize> = BTreeMap::new();
    for refused in &told {
        *targets
            .entry((refused.target.clone(), refused.reason.to_string()))
            .or_default() += 1;
    }
    assert!(targets.values().all(|n| *n == 1), "{targets:#?}");
    let has = |target: &str| told.iter().any(|r| r.target == target);
    for target in [
        "evil.example",
        "[2001:db8::1]:443",
        "DELETE api.example.com:443/v1/items",
        "ptrace",
        "clone",
        "AWS_KEY",
        "AF_PACKET",
        "/work/left.txt",
        sample::HOSTILE,
    ] {
        assert!(has(target), "{target} in {targets:#?}");
    }
    assert_eq!(told.len(), 9, "{targets:#?}");
}

#[test]
fn lines_of_a_newer_version_are_counted_and_kept_as_they_are() {
    let log = logged(|folder| sample::quiet_call(folder, sample::FIRST, "a/b"));
    let segment = log.folder.segments().expect("segments").remove(0);
    let mut text = std::fs::read_to_string(&segment.path).expect("text");
    let strange = format!(
        "{{\"seq\":9,\"run_id\":\"{}\",\"n\":9,\"unix_us\":5,\"mono_us\":5,\"event\":\"teleported\",\"data\":{{}},\"hash\":\"\"}}",
        sample::FIRST
    );
    text.push_str(&strange);
    text.push('\n');
    std::fs::write(&segment.path, text).expect("written");
    let mut selection = Selection::new(&log.folder, of_run(sample::FIRST)).expect("a log");
    let mut last = Vec::new();
    while let Some(selected) = selection.next().expect("readable") {
        last = selected.line.to_vec();
    }
    assert_eq!(last, strange.as_bytes());
    assert_eq!(selection.unreadable(), 1);
}

#[test]
fn ocsf_ids_follow_from_one_another() {
    let log = logged(sample::every_kind);
    let events = collect(&log.folder, Filter::default(), ocsf::events);
    let mut classes = BTreeSet::new();
    let mut uids = BTreeSet::new();
    for event in &events {
        let number = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{event:#}"));
        let (class, activity) = (number("class_uid"), number("activity_id"));
        classes.insert(class);
        assert_eq!(number("category_uid"), class / 1000, "{event:#}");
        assert_eq!(number("type_uid"), class * 100 + activity, "{event:#}");
        assert!(number("time") > 1_600_000_000_000, "{event:#}");
        let metadata = &event["metadata"];
        assert_eq!(metadata["version"], ocsf::SCHEMA);
        assert!(
            uids.insert(metadata["uid"].as_str().expect("a uid").to_owned()),
            "{event:#}"
        );
        assert!(!event["message"].as_str().expect("a message").is_empty());
        assert!(!event["unmapped"]["data"].is_null(), "{event:#}");
    }
    assert_eq!(
        classes.into_iter().collect::<Vec<_>>(),
        [0, 1001, 1003, 1007, 1008, 2004, 4001, 4002, 4003, 6002]
    );
    let findings = events.iter().filter(|e| e["class_uid"] == 2004);
    assert_eq!(findings.count(), 11); // nine denials, one limit, one denial before a call began
}

#[test]
fn a_trace_is_one_tree_with_real_durations() {
    let log = logged(|folder| sample::full_call(folder, sample::FIRST, "a/b"));
    let mut traces = otlp::Traces::default();
    let mut spans = collect(&log.folder, Filter::default(), |entry| traces.take(entry));
    assert!(traces.rest().is_empty());
    let ids: BTreeSet<String> = spans
        .iter()
        .map(|s| s["spanId"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), spans.len());
    let root = spans.pop().expect("the call comes last");
    assert_eq!(root["traceId"], format!("0000{}", sample::FIRST));
    assert!(root.get("parentSpanId").is_none());
    assert_eq!(root["status"]["code"], 2);
    for span in &spans {
        assert!(ids.contains(span["parentSpanId"].as_str().expect("a parent")));
        assert_eq!(span["traceId"], root["traceId"]);
    }
    let named = |name: &str| {
        spans
            .iter()
            .find(|s| s["name"] == name)
            .unwrap_or_else(|| panic!("{name} in {spans:#?}"))
    };
    let nanos = |span: &Value, key: &str| -> u64 {
        span[key]
            .as_str()
            .expect("a string")
            .parse()
            .expect("a number")
    };
    let connection = named("connect api.example.com:443");
    let took = nanos(connection, "endTimeUnixNano") - nanos(connection, "startTimeUnixNano");
    assert_eq!(took, 87_000_000);
    assert_eq!(connection["events"].as_array().expect("events").len(), 3);
    let refused = named("connect [2001:db8::1]:443");
    assert_eq!(refused["status"]["code"], 2);
    let (python, shell) = (named("exec python3"), named("exec sh"));
    assert_eq!(shell["parentSpanId"], python["spanId"]);
    assert_eq!(python["parentSpanId"], root["spanId"]);
    let again = {
        let mut traces = otlp::Traces::default();
        collect(&log.folder, Filter::default(), |entry| traces.take(entry))
    };
    assert_eq!(again.last(), Some(&root));
}

#[test]
fn a_call_without_an_end_is_said_to_be_unfinished() {
    let log = logged(|folder| {
        let recorder = sample::recorder(folder, sample::FIRST);
        recorder
            .decide(None, &sample::started(&recorder, "a/b"))
            .expect("recorded");
    });
    let mut traces = otlp::Traces::default();
    assert!(collect(&log.folder, Filter::default(), |e| traces.take(e)).is_empty());
    let rest = traces.rest();
    assert_eq!(rest.len(), 1);
    assert!(rest[0].to_string().contains("skillcell.unfinished"));
}

#[test]
fn a_call_that_did_not_begin_is_whole_by_its_one_event() {
    let log = logged(|folder| sample::refused_call(folder, sample::REFUSED, "a/b"));
    let of_call = || of_run(sample::REFUSED);
    let mut traces = otlp::Traces::default();
    let spans = collect(&log.folder, of_call(), |entry| traces.take(entry));
    assert!(traces.rest().is_empty());
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["name"], "run a/b");
    assert_eq!(
        spans[0]["status"],
        serde_json::json!({"code": 2, "message": "path_not_granted"})
    );
    assert_eq!(spans[0]["events"].as_array().map(Vec::len), Some(1));

    let events = collect(&log.folder, of_call(), ocsf::events);
    let classes: Vec<&Value> = events.iter().map(|e| &e["type_uid"]).collect();
    assert_eq!(classes, [600_203, 200_401]);
    assert_eq!(events[0]["status"], "Failure");
    assert_eq!(events[0]["actor"]["user"]["name"], "ada@example.com");

    let rows = collect(&log.folder, of_call(), skillhub::rows);
    let actions: Vec<&Value> = rows.iter().map(|r| &r["action"]).collect();
    assert_eq!(actions, ["SKILL_FILE_DENIED", "SKILL_RUN_REFUSED"]);
    assert_eq!(rows[1]["request_id"], "req-43");
    assert_eq!(rows[1]["detail_json"]["status"], "denied");

    let cells = collect(&log.folder, of_call(), |e| vec![csv::row(e)]);
    assert!(
        cells[0].contains(
            ",call_refused,a/b,1.2.3,ada@example.com,req-43,,,,,denied,path_not_granted,"
        ),
        "{}",
        cells[0]
    );
}

#[test]
fn a_call_that_did_not_begin_has_a_page_of_its_own() {
    let log = logged(|folder| sample::refused_call(folder, sample::REFUSED, "a/b"));
    let mut report = Report::default();
    collect(&log.folder, of_run(sample::REFUSED), |entry| {
        report.take(entry);
        Vec::<()>::new()
    });
    let page = report.html(&Checked {
        log: "audit".to_owned(),
        result: skillcell_audit::verify(&log.folder, &Expectation::default()).expect("readable"),
        at_us: 1,
        unreadable: 0,
    });
    for part in [
        "a/b",
        "<span class=\"pill bad\">denied</span>",
        "path_not_granted",
        "Nothing ran: the call was refused before it began.",
        "ada@example.com",
        "req-43",
        "allow it: --read PATH",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("no end recorded"));
    assert!(!page.contains("<img src=x"), "words of a skill are escaped");
}

#[test]
fn events_of_a_span_are_bounded_and_counted() {
    let log = logged(|folder| {
        let recorder = sample::recorder(folder, sample::FIRST);
        recorder
            .decide(None, &sample::started(&recorder, "a/b"))
            .expect("recorded");
        let event = sample::middle(&recorder).remove(2).1;
        for _ in 0..1500 {
            recorder.note(None, &event).expect("recorded");
        }
        recorder
            .finish(&sample::ended(Status::Ok, None, Vec::new()))
            .expect("recorded");
    });
    let mut traces = otlp::Traces::default();
    let spans = collect(&log.folder, Filter::default(), |e| traces.take(e));
    assert_eq!(spans[0]["events"].as_array().expect("events").len(), 1000);
    assert_eq!(spans[0]["droppedEventsCount"], 500);
}

#[test]
fn rows_for_a_spreadsheet_have_the_documented_columns_and_no_formula() {
    let log = logged(sample::every_kind);
    let rows = collect(&log.folder, Filter::default(), |e| vec![csv::row(e)]);
    let header = csv::header();
    assert_eq!(header.trim_end().split(',').count(), csv::COLUMNS.len());
    for row in &rows {
        assert!(row.ends_with("\r\n"));
        assert!(!row.contains('\u{1b}'), "{row:?}");
    }
    let formula = rows
        .iter()
        .find(|r| r.contains("HYPERLINK"))
        .expect("the formula");
    assert!(formula.contains(",\"'=HYPERLINK(\"\"http"), "{formula}");
}

#[test]
fn rows_for_a_registry_fit_its_table() {
    let log = logged(sample::every_kind);
    let rows = collect(&log.folder, Filter::default(), skillhub::rows);
    let mut actions = BTreeSet::new();
    for row in &rows {
        let columns: Vec<&String> = row.as_object().expect("an object").keys().collect();
        assert_eq!(
            columns,
            [
                "actor_user_id",
                "action",
                "target_type",
                "target_id",
                "request_id",
                "client_ip",
                "user_agent",
                "detail_json",
                "created_at"
            ]
        );
        let action = row["action"].as_str().expect("an action");
        assert!(skillhub::ACTIONS.contains(&action), "{action}");
        actions.insert(action.to_owned());
        assert!(row["detail_json"]["run_id"].is_string());
    }
    assert_eq!(actions.len(), skillhub::ACTIONS.len(), "{actions:?}");
}
