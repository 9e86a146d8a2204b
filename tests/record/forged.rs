//! Skills that try to have something else written down than what they do, or nothing.

use crate::{assert_whole, events, of_kind, python, shell};
use serde_json::Value;
use skillcell_tests::{Cell, Level, Outcome, Stage, User, claim, shared};

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

claim! {
    fn a_link_in_the_bundle_is_recorded_by_the_file_that_it_leads_to(cell) {
        let code = "
import json
for name in ['link', 'folder/ld.so.cache', 'main.py', 'missing']:
    try:
        open(name).close()
    except (OSError, UnicodeDecodeError):
        pass
print(json.dumps({'ok': True}))
";
        let bundle = python(cell, code);
        std::os::unix::fs::symlink(FOREIGN, bundle.join("link")).expect("links");
        std::os::unix::fs::symlink("/etc", bundle.join("folder")).expect("links");
        let outcome = cell.call(bundle).run();
        outcome.assert_ok();
        let events = events(cell, &outcome);
        let paths: Vec<&str> = of_kind(&events, "file_opened")
            .filter_map(|e| e["data"]["path"].as_str())
            .collect();
        // Once more for Python's own loader.
        assert_eq!(paths.iter().filter(|p| **p == FOREIGN).count(), 3, "{paths:?}");
        for own in ["main.py", "missing", "link", "folder"] {
            assert!(!paths.iter().any(|p| p.contains(own)), "{paths:?}");
        }
    }
}

/// At the process level there are no sockets.
#[test]
fn an_address_is_denied_and_recorded_however_a_datagram_is_sent_to_it() {
    const CODE: &str = "
import ctypes, json, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = ('192.0.2.7', 9)
told = []
for send in [lambda: s.sendto(b'x', to), lambda: s.sendmsg([b'x'], [], 0, to)]:
    try:
        send()
        told.append(0)
    except OSError as e:
        told.append(e.errno)
libc = ctypes.CDLL(None, use_errno=True)
address = ctypes.create_string_buffer(struct.pack('=H', 2) + struct.pack('!H', 9) + bytes([192, 0, 2, 7]) + bytes(8))
text = ctypes.create_string_buffer(b'x')
vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(text), 1))
message = lambda name, size: struct.pack('QIxxxxQQQQiI', name, size, ctypes.addressof(vector), 1, 0, 0, 0, 0) + bytes(8)
both = ctypes.create_string_buffer(message(0, 0) + message(ctypes.addressof(address), 16))
libc.sendmmsg(s.fileno(), both, 2, 0)
told.append(ctypes.get_errno())
# One that names nobody goes on.
a, b = socket.socketpair()
a.sendmsg([b'hello'])
print(json.dumps({'told': told, 'got': b.recv(9).decode()}))
";
    let _shared = shared();
    for user in [User::Caller, User::Ordinary] {
        let cell = Cell::new(Level::Sandbox, user);
        for level in ["decisions", "security", "full"] {
            let outcome = cell
                .call(python(&cell, CODE))
                .flags(["--audit", level])
                .run();
            let result = outcome.assert_ok();
            assert_eq!(
                result["told"],
                serde_json::json!([101, 101, 101]),
                "{result}"
            );
            assert_eq!(result["got"], "hello");
            let denials = outcome.envelope()["denials"].clone();
            assert_eq!(denials[0]["target"], "192.0.2.7:9", "{denials}");
            assert_eq!(denials[0]["count"], 3, "{denials}");
            let events = events(&cell, &outcome);
            let names: Vec<&str> = of_kind(&events, "denied")
                .filter_map(|e| e["data"]["syscall"]["name"].as_str())
                .collect();
            assert_eq!(names, ["sendto", "sendmsg", "sendmmsg"], "{level}");
        }
    }
}

#[test]
fn a_socket_in_a_folder_is_recorded_as_a_file_that_is_made() {
    let _shared = shared();
    let cell = Cell::new(Level::Sandbox, User::Ordinary);
    let code = "
import os, socket
os.chdir('/tmp')
socket.socket(socket.AF_UNIX).bind('named')
socket.socket(socket.AF_UNIX).bind('\\0abstract')
socket.socket(socket.AF_INET).bind(('127.0.0.1', 0))
print('{}')
";
    let outcome = cell.call(python(&cell, code)).run();
    outcome.assert_ok();
    let events = events(&cell, &outcome);
    let made: Vec<&str> = of_kind(&events, "file_changed")
        .filter(|e| e["data"]["change"] == "make_node")
        .filter_map(|e| e["data"]["path"].as_str())
        .collect();
    assert_eq!(made, ["/tmp/named"]);
}
