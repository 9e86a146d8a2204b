//! `skillcell audit report`, in a real browser.

use crate::{audit, cell, log, sample};
use skillcell_audit::Event;
use skillcell_core::Status;
use skillcell_tests::{Cell, Child, example, shared};
use std::path::{Path, PathBuf};

const CHROMIUM: &str = "/usr/bin/chromium";

/// Chromium with nothing of its own: no profile, no network, nobody else's settings.
fn chromium(cell: &Cell, more: &[&str], page: &Path) -> String {
    assert!(
        Path::new(CHROMIUM).exists(),
        "there is no {CHROMIUM}: run scripts/test, or: apt install chromium"
    );
    let profile = tempfile::Builder::new()
        .prefix("chromium.")
        .tempdir_in(cell.path("work"))
        .expect("a folder");
    let mut command = cell.command(CHROMIUM);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", page.display()));
    Child::spawn(command, None)
        .finish()
        .expect_success("chromium shows the page")
        .stdout
}

fn page(cell: &Cell, log: &Path, run: &str) -> PathBuf {
    let path = cell.path("work/run.html");
    let outcome = audit(
        cell,
        "report",
        log,
        [run, "--html", "-o", path.to_str().expect("text")],
    );
    assert_eq!(outcome.code, 0, "{}", outcome.show());
    path
}

/// What stands between tags, as a reader sees it.
fn text(dom: &str) -> String {
    let body = dom.split_once("<main>").expect("a body").1;
    let body = body.split_once("<script>").expect("an end").0;
    let mut out = String::new();
    let mut tag = false;
    for c in body.chars() {
        match c {
            '<' => tag = true,
            '>' => tag = false,
            c if !tag => out.push(c),
            _ => {}
        }
    }
    out.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[test]
fn hostile_words_are_text_in_a_browser_and_nothing_of_theirs_runs() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let page = page(&cell, &log, sample::FIRST);
    let dom = chromium(&cell, &["--dump-dom"], &page);
    let title = format!("<title>Run {} – Skillcell</title>", sample::FIRST);
    assert!(dom.contains(&title), "{dom}");
    // The only elements that could do something are the page's own.
    assert_eq!(dom.matches("<script").count(), 1);
    assert_eq!(dom.matches("<img").count(), 0);
    assert_eq!(dom.matches("<style").count(), 1);
    // The page's own script did run: it shows its search field.
    let field = dom.split("id=\"find\"").nth(1).expect("the field");
    let field = field.split('>').next().expect("its end");
    assert!(!field.contains("hidden"), "{field}");
    let text = text(&dom);
    let shown = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\\u{1b}[2J\\u{202e}gpj.exe\\u{9b}31m&amp;\"'";
    assert!(text.contains(shown), "{text}");
    for odd in ['\u{1b}', '\u{202e}', '\u{9b}'] {
        assert!(!dom.contains(odd), "{odd:?}");
    }
}

/// The counter-proof: the same words do run where nothing escapes them.
#[test]
fn the_hostile_words_are_hostile() {
    let _shared = shared();
    let cell = cell();
    let page = cell.file(
        "work/plain.html",
        format!("<title>fine</title>{}", sample::HOSTILE),
    );
    let dom = chromium(&cell, &["--dump-dom"], &page);
    assert!(dom.contains("<title>owned</title>"), "{dom}");
}

/// A second lock: even unescaped, a policy that allows two hashes runs nothing else.
#[test]
fn the_policy_of_the_page_stops_what_is_put_into_it() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let path = page(&cell, &log, sample::FIRST);
    let html = std::fs::read_to_string(&path).expect("a page");
    for outside in [
        "<link", "<a ", "<img", "<iframe", "<object", "@import", "url(",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    let attacked = html.replace("<main>", &format!("<main>{}", sample::HOSTILE));
    let attacked = cell.file("work/attacked.html", attacked);
    let dom = chromium(&cell, &["--dump-dom"], &attacked);
    assert!(dom.contains("onerror="), "the attack is in the page");
    assert!(!dom.contains("<title>owned</title>"), "and did not run");
}

#[test]
fn a_page_has_all_its_sections_and_says_that_the_log_is_whole() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, sample::every_kind);
    let dom = chromium(&cell, &["--dump-dom"], &page(&cell, &log, sample::FIRST));
    for id in [
        "facts",
        "denials",
        "receipt",
        "processes",
        "hosts",
        "files",
        "syscalls",
        "timeline",
        "chain",
    ] {
        assert!(dom.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    let text = text(&dom);
    for words in [
        "demo/everything",
        "limit exceeded",
        "memory_exceeded",
        "ada@example.com",
        "req-42",
        "allow it: --write /work/left.txt",
        "watched by the supervisor",
        "/usr/bin/python3",
        "exit code 3",
        "api.example.com:443",
        "1.0 MiB",
        "The log is whole",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_page_of_a_changed_log_says_so() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, |folder| {
        sample::full_call(folder, sample::FIRST, "demo/everything");
    });
    let segment = log.join("00000001.jsonl");
    let text = std::fs::read_to_string(&segment).expect("text");
    std::fs::write(&segment, text.replace("/etc/passwd", "/etc/passwe")).expect("own file");
    let page = page(&cell, &log, sample::FIRST);
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("not whole") && !html.contains("The log is whole"));
}

#[test]
fn a_page_of_a_large_run_is_bounded_and_counts_what_it_leaves_out() {
    let _shared = shared();
    let cell = cell();
    let log = log(&cell, |folder| {
        let recorder = sample::recorder(folder, sample::FIRST);
        recorder
            .decide(None, &sample::started(&recorder, "demo/large"))
            .expect("recorded");
        for number in 0..20_000 {
            let path = recorder.text(format!("/tmp/{number}").as_bytes());
            let address = Event::Connect { address: path };
            recorder.note(None, &address).expect("recorded");
        }
        recorder
            .finish(&sample::ended(Status::Ok, None, Vec::new()))
            .expect("recorded");
    });
    let page = page(&cell, &log, sample::FIRST);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.len() < 2 << 20, "{} bytes", html.len());
    assert!(html.contains("18001 events are left out here (18001 connect)"));
}

#[test]
fn a_real_run_makes_a_page_that_shows_something() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .flags(["--params", "{\"name\":\"Ada\"}"])
        .run();
    outcome.assert_ok();
    let run = outcome.run_id().expect("an id");
    let path = cell.path("work/real.html");
    let made = cell.skillcell([
        "audit",
        "report",
        run,
        "--html",
        "-o",
        path.to_str().expect("text"),
    ]);
    assert_eq!(made.code, 0, "{}", made.show());
    let picture = |name: &str, scheme: u8| {
        let file = cell.path(&format!("work/{name}.png"));
        let target = format!("--screenshot={}", file.display());
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        chromium(&cell, &[&target, "--window-size=1280,1600", &scheme], &path);
        let bytes = std::fs::read(&file).expect("a picture");
        assert!(bytes.starts_with(b"\x89PNG"), "not a picture");
        // An empty page of this size is about 10 KiB.
        assert!(bytes.len() > 40 << 10, "{} bytes", bytes.len());
        bytes
    };
    let (dark, light) = (picture("dark", 0), picture("light", 1));
    assert!(dark != light, "one look for both");
    let html = std::fs::read_to_string(&path).expect("a page");
    assert!(!html.contains("Ada"), "params or results are in the page");
}
