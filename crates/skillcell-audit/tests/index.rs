//! The index: finds what is in the log, and is never more than the log.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod samples;

use samples::{call, middle, opened, recorder, refused, run, started};
use skillcell_audit::{
    Access, AuditError, Filter, Folder, Found, Index, Log, Made, Rebuilt, Retention, parse,
};
use skillcell_core::{AuditLevel, Status};
use std::os::unix::fs::{FileExt, PermissionsExt};

fn log() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path().join("audit"));
    (dir, folder)
}

fn open(folder: &Folder) -> Index {
    Index::open(folder, &mut |_| {}).unwrap()
}

fn search(folder: &Folder, filter: &Filter) -> Vec<Found> {
    open(folder).search(filter, 100).unwrap()
}

fn kinds(found: &[Found]) -> Vec<String> {
    let kind =
        |f: &Found| serde_json::from_slice::<serde_json::Value>(&f.line).unwrap()["event"].clone();
    found
        .iter()
        .map(|f| kind(f).as_str().unwrap().to_owned())
        .collect()
}

fn is(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn every_filter_finds_its_events_and_no_others() {
    let (_dir, folder) = log();
    call(&folder, 1, "finance/wallet", Status::Denied);
    let by = |filter: Filter| kinds(&search(&folder, &filter));
    let host = |h: &str| Filter {
        host: is(h),
        ..Filter::default()
    };
    let network = [
        "name_asked",
        "connection_decided",
        "http_request",
        "connection_ended",
    ];
    assert_eq!(by(host("api.example.com")), network);
    assert_eq!(by(host("API.example.com.")), network);
    assert_eq!(by(host("*.example.com")), network);
    assert_eq!(by(host("*.example.net")), ["name_asked", "denied"]);
    assert_eq!(by(host("example.com")), [""; 0]);
    let path = |p: &str| Filter {
        path: is(p),
        ..Filter::default()
    };
    assert_eq!(
        by(path("/tmp/out")),
        ["file_opened", "file_opened", "file_changed", "file_changed"]
    );
    assert_eq!(by(path("/tmp/out/final.csv")), ["file_changed"]);
    assert_eq!(by(path("/usr/lib")), ["syscall"]);
    assert_eq!(by(path("/tmp/ou")), [""; 0]);
    assert_eq!(
        by(Filter {
            syscall: is("ptrace"),
            ..Filter::default()
        }),
        ["denied"]
    );
    assert_eq!(
        by(Filter {
            reason: is("timeout_exceeded"),
            ..Filter::default()
        }),
        ["limit_reached"]
    );
    assert_eq!(
        by(Filter {
            event: is("connect"),
            ..Filter::default()
        }),
        ["connect"]
    );
    let both = Filter {
        event: is("denied"),
        ..host("evil.example.net")
    };
    assert_eq!(by(both), ["denied"]);
    let words = |words: &[&str]| Filter {
        text: words.iter().map(|w| (*w).to_owned()).collect(),
        ..Filter::default()
    };
    assert_eq!(by(words(&["passwd"])), ["file_opened"]);
    assert_eq!(by(words(&["/etc/pass*"])), ["file_opened"]);
    assert_eq!(by(words(&["/etc/pass"])), [""; 0]);
    assert_eq!(by(words(&["etc/passwd"])), ["file_opened"]);
    assert_eq!(by(words(&["passwd/etc"])), [""; 0]);
    assert_eq!(by(words(&["python3", "main.py"])).len(), 2);
    assert_eq!(by(words(&["WALLET"])), ["call_started"]);
    assert_eq!(by(words(&["wallet*"])), ["call_started", "http_request"]);
    assert_eq!(by(words(&["\" OR * NEAR("])), [""; 0]);
}

#[test]
fn events_are_found_by_their_call() {
    let (_dir, folder) = log();
    call(&folder, 1, "finance/wallet", Status::Denied);
    call(&folder, 2, "office/report", Status::Ok);
    let per_call = middle().len() + 2;
    for (filter, events) in [
        (
            Filter {
                skill: is("finance/wallet"),
                ..Filter::default()
            },
            per_call,
        ),
        (
            Filter {
                skill: is("report"),
                ..Filter::default()
            },
            per_call,
        ),
        (
            Filter {
                skill: is("report@1.2.0"),
                ..Filter::default()
            },
            per_call,
        ),
        (
            Filter {
                skill: is("report@2"),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                status: is("denied"),
                ..Filter::default()
            },
            per_call,
        ),
        (
            Filter {
                run: Some(run(2)),
                ..Filter::default()
            },
            per_call,
        ),
        (
            Filter {
                actor: is("ada@example.com"),
                ..Filter::default()
            },
            2 * per_call,
        ),
        (
            Filter {
                actor: is("ada"),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                request_id: is("req-1"),
                event: is("syscall"),
                ..Filter::default()
            },
            2,
        ),
        (Filter::default(), 2 * per_call + 1),
        (
            Filter {
                until_us: Some(1),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                since_us: Some(1),
                ..Filter::default()
            },
            2 * per_call + 1,
        ),
    ] {
        assert_eq!(search(&folder, &filter).len(), events, "{filter:?}");
    }
}

#[test]
fn calls_are_listed_newest_first_with_what_they_had_to_do_with() {
    let (_dir, folder) = log();
    call(&folder, 1, "finance/wallet", Status::Denied);
    call(&folder, 2, "office/report", Status::Ok);
    let dead = recorder(&folder, Retention::default(), run(3));
    dead.decide(None, &started("office/report", AuditLevel::Security))
        .unwrap();
    let index = open(&folder);
    let calls = index.calls(&Filter::default(), 10).unwrap();
    let ids: Vec<_> = calls.iter().map(|c| c.run_id.clone()).collect();
    assert_eq!(ids, [run(3), run(2), run(1)]);
    assert_eq!(calls[0].status, None);
    assert_eq!(calls[2].hosts, ["api.example.com", "evil.example.net"]);
    assert_eq!((calls[2].denials, calls[2].wall_ms), (3, Some(412)));
    let of = |filter: Filter| index.calls(&filter, 10).unwrap().len();
    assert_eq!(
        of(Filter {
            host: is("*.example.com"),
            ..Filter::default()
        }),
        2
    );
    assert_eq!(
        of(Filter {
            path: is("/tmp"),
            status: is("ok"),
            ..Filter::default()
        }),
        1
    );
    assert_eq!(
        of(Filter {
            path: is("/tm"),
            ..Filter::default()
        }),
        0
    );
    assert_eq!(
        of(Filter {
            status: is("unfinished"),
            ..Filter::default()
        }),
        1
    );
    assert_eq!(index.runs(run(2).as_str()).unwrap().len(), 1);
    assert_eq!(index.runs(&run(2).as_str()[..12]).unwrap().len(), 1);
    assert_eq!(index.runs("0190").unwrap().len(), 3);
    assert!(index.runs("g").unwrap().is_empty());
    assert!(index.runs("%").unwrap().is_empty());
    let stats = index.stats(&Filter::default(), 10).unwrap();
    assert_eq!((stats.calls, stats.denials), (3, 3));
    assert_eq!(stats.denials_by_reason[0].name, "host_not_allowed");
    assert_eq!(stats.durations.p99_ms, Some(412));
    assert_eq!(stats.skills[0].skill.as_deref(), Some("office/report"));
}

#[test]
fn a_call_that_did_not_begin_is_found_by_all_that_it_says() {
    let (_dir, folder) = log();
    call(&folder, 1, "office/report", Status::Ok);
    recorder(&folder, Retention::default(), run(2))
        .finish(&refused("finance/wallet", &["/srv/keys/a.pem"]))
        .unwrap();
    let with = |set: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        set(&mut filter);
        filter
    };
    for filter in [
        with(&|f| f.status = is("denied")),
        with(&|f| f.reason = is("path_not_granted")),
        with(&|f| f.skill = is("wallet@1.2.0")),
        with(&|f| f.event = is("call_refused")),
        with(&|f| f.path = is("/srv/keys")),
        with(&|f| f.request_id = is("req-2")),
        with(&|f| f.run = Some(run(2))),
        with(&|f| f.text = vec!["wallet".to_owned(), "a.pem".to_owned()]),
    ] {
        assert_eq!(
            kinds(&search(&folder, &filter)),
            ["call_refused"],
            "{filter:?}"
        );
        if filter.text.is_empty() {
            let calls = open(&folder).calls(&filter, 10).unwrap();
            assert_eq!(calls.len(), 1, "{filter:?}");
            assert_eq!(calls[0].run_id, run(2));
        }
    }
    let index = open(&folder);
    let calls = index.calls(&Filter::default(), 10).unwrap();
    assert_eq!(calls[0].reason.as_deref(), Some("path_not_granted"));
    assert_eq!((calls[0].events, calls[0].denials), (1, 1));
    assert_eq!((&calls[0].level, calls[0].wall_ms), (&None, None));
    let stats = index.stats(&Filter::default(), 10).unwrap();
    assert_eq!((stats.calls, stats.denials), (2, 1));
    assert!(stats.statuses.iter().any(|s| s.name == "denied"));
    assert_eq!(stats.durations.p50_ms, Some(412));
}

#[test]
fn only_new_lines_are_read_and_nothing_is_counted_twice() {
    let (_dir, folder) = log();
    let lines = middle().len() as u64 + 2;
    call(&folder, 1, "a/b", Status::Ok);
    assert_eq!(open(&folder).made().rebuilt, Some(Rebuilt::New));
    assert_eq!(open(&folder).made(), Made::default());
    // A call whose events come in parts.
    let recorder = recorder(&folder, Retention::default(), run(2));
    recorder
        .decide(None, &started("a/b", AuditLevel::Security))
        .unwrap();
    assert_eq!(open(&folder).made().lines, 1);
    recorder.decide(None, &middle()[1].1).unwrap();
    recorder.finish(&samples::ended(Status::Ok, &[])).unwrap();
    let index = open(&folder);
    assert_eq!(index.made().lines, 2);
    let calls = index.calls(&Filter::default(), 10).unwrap();
    assert_eq!((calls[0].events, calls[1].events), (3, lines));
    assert_eq!(
        index.stats(&Filter::default(), 10).unwrap().events,
        lines + 3
    );
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.index()), 0o600);
}

#[test]
fn a_damaged_index_is_made_again() {
    let (_dir, folder) = log();
    call(&folder, 1, "a/b", Status::Ok);
    drop(open(&folder));
    // Not a database at all.
    std::fs::write(folder.index(), b"what is this").unwrap();
    assert_eq!(open(&folder).made().rebuilt, Some(Rebuilt::Damaged));
    // Pages of it overwritten.
    for page in 1..12 {
        let file = std::fs::File::options()
            .write(true)
            .open(folder.index())
            .unwrap();
        file.write_all_at(&[0x5a; 4096], page * 8192).unwrap();
        let asked = Index::ask(&folder, &mut |_| {}, |index| {
            let found = index.search(&Filter::default(), 100)?;
            Ok((found.len(), index.calls(&Filter::default(), 10)?.len()))
        });
        assert_eq!(asked.unwrap().0, (middle().len() + 3, 1), "page {page}");
    }
    // Well-formed, but of other places in the log.
    drop(open(&folder));
    let database = rusqlite::Connection::open(folder.index()).unwrap();
    database
        .execute("UPDATE events SET offset = offset + 1", [])
        .unwrap();
    drop(database);
    let ((), made) = Index::ask(&folder, &mut |_| {}, |index| {
        index.search(&Filter::default(), 100).map(|_| ())
    })
    .unwrap();
    assert_eq!(made.rebuilt, Some(Rebuilt::Damaged));
    // Another version's.
    let database = rusqlite::Connection::open(folder.index()).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    drop(database);
    assert_eq!(open(&folder).made().rebuilt, Some(Rebuilt::Version));
}

#[test]
fn an_index_of_another_log_is_not_used() {
    let (_dir, folder) = log();
    call(&folder, 1, "a/b", Status::Ok);
    drop(open(&folder));
    std::fs::remove_file(folder.segment(1).path).unwrap();
    std::fs::remove_file(folder.path().join("head.json")).unwrap();
    call(&folder, 2, "c/d", Status::Ok);
    let index = open(&folder);
    assert_eq!(index.made().rebuilt, Some(Rebuilt::LogReplaced));
    let calls = index.calls(&Filter::default(), 10).unwrap();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].run_id, run(2));
}

#[test]
fn what_was_pruned_is_gone_from_the_answers_too() {
    let (_dir, folder) = log();
    let small = Retention {
        segment_bytes: 2000,
        ..Retention::default()
    };
    for n in 1..=30 {
        let recorder = recorder(&folder, small, run(n));
        recorder
            .decide(None, &started("a/b", AuditLevel::Security))
            .unwrap();
        recorder
            .note(None, &opened(&format!("/data/{n}"), Access::Write))
            .unwrap();
        recorder.finish(&samples::ended(Status::Ok, &[])).unwrap();
        if n == 20 {
            drop(open(&folder));
        }
    }
    let mut log = Log::open(folder.clone(), small).unwrap();
    for keep in [30_000, 4_000] {
        let gone = log
            .prune(&Retention {
                keep_bytes: Some(keep),
                ..small
            })
            .unwrap();
        assert!(!gone.is_empty());
        let index = open(&folder);
        let found = index.search(&Filter::default(), 1000).unwrap();
        let first = parse(&found[0].line).unwrap();
        let segments = folder.segments().unwrap();
        let text = std::fs::read(&segments[0].path).unwrap();
        let line = text.split(|b| *b == b'\n').next().unwrap();
        assert_eq!(first, parse(line).unwrap());
        let calls = index.calls(&Filter::default(), 100).unwrap();
        assert!(calls.len() < 30);
        for call in &calls {
            index.events_of(call, None).unwrap();
        }
        drop(index);
        let again = Index::rebuild(&folder, &mut |_| {}).unwrap();
        assert_eq!(again.search(&Filter::default(), 1000).unwrap(), found);
        assert_eq!(
            again.calls(&Filter::default(), 100).unwrap().len(),
            calls.len()
        );
    }
}

#[test]
fn a_log_that_is_not_there_is_empty_and_stays_so() {
    let (_dir, folder) = log();
    let index = open(&folder);
    assert!(index.calls(&Filter::default(), 10).unwrap().is_empty());
    assert!(index.search(&Filter::default(), 10).unwrap().is_empty());
    assert!(!folder.path().exists());
}

#[test]
fn a_line_that_no_version_knows_is_found_by_its_kind() {
    let (_dir, folder) = log();
    call(&folder, 1, "a/b", Status::Ok);
    let text = std::fs::read_to_string(folder.segment(1).path).unwrap();
    let text = text
        .replace("\"event\":\"connect\"", "\"event\":\"teleport\"")
        .replace("\"address\":\"198.18.0.1:443\"", "\"path\":[1,2]");
    std::fs::write(folder.segment(1).path, text).unwrap();
    let filter = Filter {
        event: is("teleport"),
        ..Filter::default()
    };
    assert_eq!(search(&folder, &filter).len(), 1);
}

#[test]
fn a_link_in_the_place_of_the_index_is_not_followed() {
    let (dir, folder) = log();
    call(&folder, 1, "a/b", Status::Ok);
    let victim = dir.path().join("victim");
    std::fs::write(&victim, b"precious").unwrap();
    std::os::unix::fs::symlink(&victim, folder.index()).unwrap();
    let opened = Index::open(&folder, &mut |_| {});
    assert!(matches!(opened, Ok(_) | Err(AuditError::Index { .. })));
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
}
