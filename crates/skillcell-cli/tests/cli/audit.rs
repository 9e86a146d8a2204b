use crate::samples::{
    CHILD, SHELL, call, ended, middle, opened, program, recorder, refused, run, started, syscall,
    text,
};
use crate::{json, skillcell, stdout, whole};
use skillcell_audit::{Access, Change, Denied, Event, Folder, HttpRequest, Retention, parse};
use skillcell_core::{AuditLevel, DenialKind, Reason, Status};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn log() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path().join("audit"));
    (dir, folder)
}

fn audit(folder: &Folder, args: &[&str]) -> Output {
    let log = folder.path().to_str().unwrap();
    skillcell(&[&["audit"], args, &["--log", log]].concat())
}

/// Clock times as `DATE TIME` and `+T`, which are never the same.
fn timeless(text: &str) -> String {
    let digits = |word: &str| {
        let shape: String = word
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        shape
    };
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while !rest.is_empty() {
            let date = rest.get(..23).filter(|w| {
                let shape = digits(w);
                shape == "0000-00-00 00:00:00.000" || shape == "0000-00-00T00:00:00.000"
            });
            if date.is_some() {
                out.push_str("0000-00-00 00:00:00.000");
                rest = &rest[23..];
            } else if let Some(end) =
                rest.strip_prefix('+')
                    .and_then(|r| r.find(" ms"))
                    .filter(|end| {
                        rest[1..=*end]
                            .bytes()
                            .all(|b| b.is_ascii_digit() || b == b'.')
                    })
            {
                out.push_str("+T");
                // The column stays as wide as it was.
                rest = &rest[end + 4..];
            } else {
                let c = rest.chars().next().unwrap();
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// The same, without what right-aligned times leave before them.
fn timeless_timeline(text: &str) -> String {
    let squeeze = |line: &str| match line.trim_start().strip_prefix("+T") {
        Some(rest) => format!("  +T{rest}"),
        None => line.to_owned(),
    };
    let lines: Vec<String> = timeless(text).lines().map(squeeze).collect();
    lines.join("\n") + "\n"
}

fn two_calls(folder: &Folder) {
    call(folder, 1, "finance/wallet", Status::Denied);
    call(folder, 2, "office/report", Status::Ok);
    let dead = recorder(folder, Retention::default(), run(3));
    dead.decide(None, &started("office/report", AuditLevel::Security))
        .unwrap();
}

#[test]
fn calls_are_listed_in_one_line_each() {
    let (dir, folder) = log();
    two_calls(&folder);
    let mut text = String::new();
    for args in [
        &["list"][..],
        &["list", "--status", "denied"],
        &["list", "--skill", "report", "--limit", "1"],
        &["list", "--host", "*.example.com", "--path", "/tmp"],
        &["list", "--until", "2001-01-01"],
    ] {
        let output = audit(&folder, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        text += &format!("$ {}\n{}\n", args.join(" "), whole(&output, dir.path()));
    }
    insta::assert_snapshot!(timeless(&text));
    let calls = json(&audit(&folder, &["list", "--json"]));
    let ids: Vec<&str> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["run_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [run(3), run(2), run(1)].map(|r| r.to_string()));
}

#[test]
fn a_call_is_shown_with_its_processes_and_its_timeline() {
    let (dir, folder) = log();
    two_calls(&folder);
    let output = audit(&folder, &["show", run(1).as_str()]);
    insta::assert_snapshot!(timeless_timeline(&whole(&output, dir.path())));

    let all = stdout(&audit(
        &folder,
        &["show", run(1).as_str(), "--all", "--no-tree"],
    ));
    assert!(all.contains("openat(AT_FDCWD") && !all.contains("Processes"));
    let tree = stdout(&audit(&folder, &["show", run(1).as_str(), "--tree"]));
    assert_eq!(tree.lines().count(), 2, "{tree}");
    let last = json(&audit(&folder, &["show", "last", "--json"]));
    assert_eq!(last["call"]["run_id"], run(3).as_str());
    assert_eq!(last["events"][0]["event"], "call_started");
}

#[test]
fn a_call_that_did_not_begin_is_shown_like_others() {
    let (dir, folder) = log();
    recorder(&folder, Retention::default(), run(1))
        .finish(&refused("finance/wallet", &["/srv/a", "/srv/b"]))
        .unwrap();
    let mut text = String::new();
    for args in [
        &["list"][..],
        &["show", "last"],
        &["tail"],
        &["search", "--reason", "path_not_granted"],
        &["stats"],
    ] {
        let output = audit(&folder, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        text += &format!("$ {}\n{}\n", args.join(" "), whole(&output, dir.path()));
    }
    insta::assert_snapshot!(timeless_timeline(&text));
}

#[test]
fn a_run_is_named_by_any_beginning_that_is_its_own() {
    let (dir, folder) = log();
    two_calls(&folder);
    let found = audit(&folder, &["show", &run(2).as_str()[..12], "--json"]);
    assert_eq!(json(&found)["call"]["skill"], "office/report");
    let mut text = String::new();
    for args in [
        &["show", "0190"][..],
        &["show", "ffff"],
        &["show", "not hex \u{1b}[2J"],
        &["search", "--run", "0190"],
        &["search", "/"],
        &["list", "--since", "soon"],
        &["list", "--reason", "bad_weather"],
        &["list", "--event", "party"],
        &["prune"],
    ] {
        let output = audit(&folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        text += &format!("$ {}\n{}\n", args.join(" "), whole(&output, dir.path()));
    }
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"));
    let output = audit(&folder, &["show", "0190", "--json"]);
    assert_eq!(json(&output)["error"]["code"], "invalid_usage");
}

#[test]
fn events_are_searched_by_words_and_filters() {
    let (dir, folder) = log();
    two_calls(&folder);
    let mut text = String::new();
    for args in [
        &["search", "PASS*", "--skill", "wallet"][..],
        &["search", "--event", "denied", "--status", "denied"],
        &["search", "--host", "api.example.com", "--limit", "2"],
        &[
            "search",
            "--reason",
            "timeout_exceeded",
            "--run",
            run(2).as_str(),
        ],
        &["search", "nowhere"],
    ] {
        let output = audit(&folder, args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        text += &format!("$ {}\n{}\n", args.join(" "), whole(&output, dir.path()));
    }
    insta::assert_snapshot!(timeless(&text));
    // As they are in the log.
    let output = audit(&folder, &["search", "--event", "syscall", "--json"]);
    let log = std::fs::read_to_string(folder.segment(1).path).unwrap();
    let lines: Vec<&str> = log
        .lines()
        .filter(|l| l.contains(r#""event":"syscall""#))
        .collect();
    assert_eq!(stdout(&output).lines().collect::<Vec<_>>(), lines);
}

#[test]
fn calls_are_counted() {
    let (dir, folder) = log();
    two_calls(&folder);
    let output = audit(&folder, &["stats"]);
    insta::assert_snapshot!(timeless(&whole(&output, dir.path())));
    let one = json(&audit(&folder, &["stats", "--skill", "wallet", "--json"]));
    assert_eq!((&one["calls"], &one["denials"]), (&1.into(), &3.into()));
}

#[test]
fn pruning_says_what_goes_and_leaves_a_log_that_verifies() {
    let (_dir, folder) = log();
    let small = Retention {
        segment_bytes: 4000,
        ..Retention::default()
    };
    for n in 1..=9 {
        let recorder = recorder(&folder, small, run(n));
        recorder
            .decide(None, &started("a/b", AuditLevel::Security))
            .unwrap();
        for (task, event) in middle() {
            recorder.decide(task, &event).unwrap();
        }
        recorder.finish(&ended(Status::Ok, &[])).unwrap();
    }
    assert_eq!(audit(&folder, &["list"]).status.code(), Some(0));
    let before = folder.segments().unwrap();
    let would = json(&audit(
        &folder,
        &["prune", "--keep-size", "12KiB", "--dry-run", "--json"],
    ));
    assert_eq!(folder.segments().unwrap(), before);
    let did = json(&audit(
        &folder,
        &["prune", "--keep-size", "12KiB", "--json"],
    ));
    assert_eq!(would["segments"], did["segments"]);
    let gone = did["segments"].as_array().unwrap().len();
    assert!(gone > 2);
    assert_eq!(folder.segments().unwrap().len(), before.len() - gone);
    assert_eq!(audit(&folder, &["verify"]).status.code(), Some(0));
    let left = json(&audit(&folder, &["list", "--json"]));
    assert!(left.as_array().unwrap().len() < 9);
    let again = audit(&folder, &["prune", "--keep-age", "1d"]);
    assert_eq!(stdout(&again), "nothing to remove\n");
}

#[test]
fn a_damaged_index_is_said_and_made_again() {
    let (_dir, folder) = log();
    two_calls(&folder);
    assert_eq!(audit(&folder, &["list"]).status.code(), Some(0));
    std::fs::write(folder.index(), b"not a database").unwrap();
    let output = audit(&folder, &["list", "--json"]);
    assert_eq!(json(&output).as_array().unwrap().len(), 3);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("the index was damaged"), "{note}");
    let output = audit(&folder, &["reindex", "--json"]);
    assert_eq!(json(&output)["lines"], 2 * (middle().len() + 2) + 2);
}

const QUESTIONS: [&[&str]; 6] = [
    &["list"],
    &["search", "x"],
    &["stats"],
    &["tail"],
    &["prune", "--keep-age", "1d"],
    &["reindex"],
];

#[test]
fn a_log_that_is_named_and_not_there_is_an_error_and_is_not_made() {
    let (_dir, folder) = log();
    for args in QUESTIONS.into_iter().chain([&["show", "last"][..]]) {
        let output = audit(&folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            error.contains("there is no such folder"),
            "{args:?}: {error}"
        );
    }
    assert!(!folder.path().exists());
}

#[test]
fn a_user_without_a_log_has_made_no_calls() {
    let home = tempfile::tempdir().unwrap();
    for args in QUESTIONS {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_skillcell"))
            .arg("audit")
            .args(args)
            .env("SKILLCELL_STATE_DIR", home.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
    }
    assert!(!home.path().join("audit").exists());
}

const HOSTILE: [&[u8]; 5] = [
    b"\x1b[2J\x1b]0;owned\x07",
    b"two\nlines\tand\rmore",
    b"\xff\xfe\x80bytes",
    "\u{202e}gpj.exe\u{200b}\u{9b}31m\u{2028}".as_bytes(),
    &[b'A'; 65536],
];

/// What a skill calls its files, arguments, hosts and requests, is shown and never obeyed.
#[test]
fn no_word_of_a_skill_breaks_a_line_or_drives_the_terminal() {
    let (_dir, folder) = log();
    let recorder = recorder(&folder, Retention::default(), run(1));
    let mut events = 0;
    let mut note = |event: &Event| {
        recorder.note(Some(CHILD), event).unwrap();
        events += 1;
    };
    note(&started("a\u{1b}[2J/b\n", AuditLevel::Full));
    for word in HOSTILE {
        let word = text(word);
        let plain = word.as_str().to_owned();
        note(&Event::ProcessStarted {
            program: word.clone(),
            argv: vec![word.clone(); 3],
            argc: 3,
        });
        note(&opened(&plain, Access::Write));
        note(&Event::FileChanged {
            change: Change::Symlink,
            path: word.clone(),
            to: Some(word.clone()),
        });
        note(&Event::Connect {
            address: word.clone(),
        });
        note(&Event::HttpRequest(HttpRequest {
            connection: None,
            host: plain.clone(),
            port: 8080,
            method: word.clone(),
            path: word.clone(),
            denied: Some(Reason::HttpRequestNotAllowed),
        }));
        note(&Event::NameAsked(crate::samples::egress(
            &plain, None, None,
        )));
        note(&Event::Denied(Denied {
            kind: DenialKind::Filesystem,
            target: word.clone(),
            reason: Reason::PathNotWritable,
            syscall: Some(syscall(&plain, &[&plain], None)),
        }));
    }
    note(&refused("a\u{1b}[2J/b\n", &["\u{1b}[2J\n\u{202e}"]));
    note(&ended(
        Status::Denied,
        &[("\u{1b}[2J\n", Reason::PathNotWritable, 1)],
    ));
    recorder.flush().unwrap();
    let lines = events + 1;

    let log = std::fs::read(folder.segment(1).path).unwrap();
    let written: Vec<&[u8]> = log
        .strip_suffix(b"\n")
        .unwrap()
        .split(|b| *b == b'\n')
        .collect();
    assert_eq!(written.len(), lines);
    assert!(written.iter().all(|line| parse(line).is_ok()));

    let commands: [(&[&str], Option<usize>); 9] = [
        (&["tail", "-n", "1000"], Some(lines)),
        (&["tail", "-n", "1000", "--json"], Some(lines)),
        (&["search", "--limit", "1000"], Some(lines)),
        (&["search", "--limit", "1000", "--json"], Some(lines)),
        (&["list"], Some(2)),
        (&["list", "--json"], None),
        (&["show", "last", "--all"], None),
        (&["show", "last", "--json"], None),
        (&["stats"], None),
    ];
    for (args, expected) in commands {
        let output = stdout(&audit(&folder, args));
        if let Some(expected) = expected {
            assert_eq!(output.lines().count(), expected, "{args:?}");
        }
        let bad = |c: char| {
            (c.is_control() && c != '\n')
                || matches!(c, '\u{202e}' | '\u{200b}' | '\u{2028}' | '\u{feff}')
        };
        assert!(!output.contains(bad), "{args:?}: {output:?}");
        if !args.contains(&"--json") {
            let longest = output.lines().map(str::len).max().unwrap();
            assert!(longest < 8000, "{args:?}: {longest}");
        }
    }
    let json = stdout(&audit(&folder, &["search", "--limit", "1000", "--json"]));
    for (shown, line) in json.lines().zip(&written) {
        assert_eq!(parse(shown.as_bytes()).unwrap(), parse(line).unwrap());
    }
}

#[test]
fn the_tail_goes_on_over_rotation_and_pruning() {
    let (_dir, folder) = log();
    let small = Retention {
        segment_bytes: 600,
        ..Retention::default()
    };
    let recorder = recorder(&folder, small, run(1));
    let write = |n: usize| {
        recorder
            .decide(Some(SHELL), &program("/bin/true", &[&format!("n{n}")]))
            .unwrap();
    };
    for n in 0..10 {
        write(n);
    }
    let last = stdout(&audit(&folder, &["tail", "-n", "3"]));
    assert_eq!(last.lines().count(), 3);
    assert!(last.lines().last().unwrap().contains("n9"), "{last}");
    let all = stdout(&audit(&folder, &["tail", "-n", "1000"]));
    assert_eq!(all.lines().filter(|l| l.contains("executes")).count(), 10);

    let mut child = Command::new(env!("CARGO_BIN_EXE_skillcell"))
        .args(["audit", "tail", "-f", "-n", "1", "--log"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || loop {
        let line = lines.next().unwrap().unwrap();
        if let Some((_, rest)) = line.split_once("[n") {
            break rest.trim_end_matches(']').parse::<usize>().unwrap();
        }
    };
    assert_eq!(next(), 9);
    for n in 10..26 {
        write(n);
        assert_eq!(next(), n);
        if n == 20 {
            let mut log = skillcell_audit::Log::open(folder.clone(), small).unwrap();
            let keep = Retention {
                keep_bytes: Some(1000),
                ..small
            };
            assert!(!log.prune(&keep).unwrap().is_empty());
        }
    }
    assert!(folder.segments().unwrap().last().unwrap().number > 5);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn colours_are_for_terminals_only() {
    let (_dir, folder) = log();
    two_calls(&folder);
    for variable in ["NO_COLOR", "CLICOLOR"] {
        let output = Command::new(env!("CARGO_BIN_EXE_skillcell"))
            .args(["audit", "list", "--log"])
            .arg(folder.path())
            .env_remove("NO_COLOR")
            .env(variable, "1")
            .output()
            .unwrap();
        assert!(!stdout(&output).contains('\u{1b}'));
    }
    let forced = Command::new(env!("CARGO_BIN_EXE_skillcell"))
        .args(["audit", "list", "--log"])
        .arg(folder.path())
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(stdout(&forced).contains("\u{1b}["));
}
