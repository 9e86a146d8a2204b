//! Skills that try to have something else written down than what they do, or nothing.

use crate::{assert_whole, events, of_kind, shell};
use serde_json::Value;
use skillcell_tests::{Cell, Level, Outcome, Stage, User, claim};

/// What the skill must not open unseen.
const FOREIGN: &str = "/etc/ld.so.cache";

/// A bundle that runs `forge` as it is told; the file was opened, so there is something to record.
fn forge(cell: &Cell, how: &str) -> (Outcome, Vec<Value>) {
    let bundle = shell(
        cell,
        &format!("./forge {how} \"${{TMPDIR:-/tmp}}\" && true"),
    );
    std::fs::copy(Stage::get().program("forge"), bundle.join("forge")).expect("copies");
    cell.user.own(&bundle.join("forge"));
    let outcome = cell.call(bundle).run();
    assert_eq!(outcome.assert_ok()["opened"], true, "{}", outcome.show());
    assert_whole(cell);
    let events = events(cell, &outcome);
    (outcome, events)
}

/// What the programs named `forge` are said to have opened: a dynamic loader opens the file as well,
/// and these have none.
fn opened<'a>(events: &'a [Value], program: &str) -> Vec<&'a str> {
    let mine: Vec<&Value> = of_kind(events, "process_started")
        .filter(|e| e["data"]["argv"][1] == program)
        .map(|e| &e["pid"])
        .collect();
    assert!(!mine.is_empty(), "no program {program}: {events:?}");
    of_kind(events, "file_opened")
        .filter(|e| mine.contains(&&e["pid"]))
        .filter_map(|e| e["data"]["path"].as_str())
        .collect()
}

claim! {
    /// The thread that executes it takes over its leader's number, and with it the leader's place
    /// in whatever the supervisor keeps by number.
    fn a_program_is_not_recorded_by_the_memory_that_another_process_kept(cell) {
        let (_, events) = forge(cell, "shared");
        assert_eq!(opened(&events, "look"), [FOREIGN]);
    }
}

claim! {
    fn a_path_in_memory_that_can_only_be_written_is_recorded(cell) {
        let (_, events) = forge(cell, "unreadable");
        assert_eq!(opened(&events, "unreadable"), [FOREIGN; 2]);
    }
}

claim! {
    fn nobody_hides_from_the_record_by_asking_not_to_be_looked_at(cell) {
        let (outcome, events) = forge(cell, "dumpable");
        assert_eq!(opened(&events, "dumpable"), [FOREIGN]);
        let denials = outcome.envelope()["denials"].to_string();
        assert!(denials.contains("prctl 4"), "{denials}");
    }
}

claim! {
    /// Without a user namespace an ordinary user may not look into it either: then what it opens is
    /// recorded without a name.
    fn a_program_that_nobody_may_read_is_recorded(cell) {
        let (_, events) = forge(cell, "0111");
        let blind = cell.level == Level::Process && cell.user == User::Ordinary;
        let expected = if blind { "?" } else { FOREIGN };
        assert_eq!(opened(&events, "look"), [expected]);
    }
}
