//! What each level holds.

use crate::strace::{of_the_skill, traced};
use crate::{assert_whole, events, of_kind, python, shell};
use serde_json::{Value, json};
use skillcell_tests::claim;

/// Starts programs, writes and reads files, looks at what isn't its own, and connects.
const BUSY: &str = "
cd \"${TMPDIR:-/tmp}\"
echo one > one
cat one /etc/ld.so.cache > two
mv two three
mkdir folder && ln -s /etc/passwd folder/link && rm -r folder
python3 -c 'import socket; s = socket.socket(); s.settimeout(1); print(s.connect_ex((\"127.0.0.1\", 9)))' >/dev/null 2>&1
touch /usr/denied 2>/dev/null
echo '{\"ok\": true}'
";

fn texts<'a>(events: &'a [Value], kind: &'a str, field: &'a str) -> Vec<&'a str> {
    of_kind(events, kind)
        .filter_map(|event| event["data"][field].as_str())
        .collect()
}

claim! {
    fn the_security_record_has_every_program_connection_and_write_that_strace_shows(cell) {
        let (outcome, trace) = traced(cell, &shell(cell, BUSY), "security");
        let events = events(cell, &outcome);
        let threads: Vec<u64> = events.iter().filter_map(|e| e["tid"].as_u64()).collect();
        let seen = of_the_skill(trace, &threads);
        let calls: Vec<(&str, &str)> = seen
            .values()
            .flat_map(|s| s.calls.iter().map(|(name, args)| (name.as_str(), args.as_str())))
            .collect();
        let of = |name: &str| calls.iter().filter(|(n, _)| *n == name).count();
        assert!(of("execve") >= 6, "the script starts programs");
        assert_eq!(of_kind(&events, "process_started").count(), of("execve"));
        // At the process level there are no sockets, so nothing can be connected.
        let denied = of_kind(&events, "denied").filter(|e| e["data"]["syscall"]["name"] == "connect").count();
        assert_eq!(of_kind(&events, "connect").count() + denied, of("connect"));
        let writes: Vec<&str> = calls
            .iter()
            .filter(|(name, args)| *name == "openat" && (args.contains("O_WRONLY") || args.contains("O_RDWR") || args.contains("O_CREAT")))
            .map(|(_, args)| *args)
            .collect();
        let recorded: Vec<&Value> = of_kind(&events, "file_opened").filter(|e| e["data"]["access"] != "read").collect();
        assert_eq!(recorded.len(), writes.len(), "{writes:?}\n{recorded:?}");
        assert!(!writes.is_empty());
        // And what strace doesn't tell apart: reading what isn't the skill's own.
        assert!(texts(&events, "file_opened", "path").contains(&"/etc/ld.so.cache"), "{events:?}");
        let changes: Vec<&str> = texts(&events, "file_changed", "change");
        for change in ["rename", "make_folder", "symlink", "remove"] {
            assert!(changes.contains(&change), "{change}: {changes:?}");
        }
        assert_whole(cell);
    }
}

claim! {
    fn each_event_leads_from_program_to_program(cell) {
        let outcome = cell.call(shell(cell, "sh -c 'cat /etc/ld.so.cache >/dev/null; true'; echo '{}'")).run();
        outcome.assert_ok();
        let events = events(cell, &outcome);
        let cat = of_kind(&events, "process_started")
            .find(|e| e["data"]["argv"][0] == "cat")
            .unwrap_or_else(|| panic!("no cat: {events:?}"));
        let inner = of_kind(&events, "process_started")
            .find(|e| e["pid"] == cat["ppid"])
            .unwrap_or_else(|| panic!("no parent of cat: {events:?}"));
        assert_eq!(inner["data"]["argv"], json!(["sh", "-c", "cat /etc/ld.so.cache >/dev/null; true"]));
        let outer = of_kind(&events, "process_started").find(|e| e["pid"] == inner["ppid"]);
        assert_eq!(outer.expect("the script itself")["data"]["argv"], json!(["/usr/bin/bash", "main.sh"]));
        let read = of_kind(&events, "file_opened")
            .filter(|e| e["data"]["path"] == "/etc/ld.so.cache" && e["pid"] == cat["pid"]);
        assert_eq!(read.count(), 2, "once for the loader, and once because it was told to: {events:?}");
        // Numbered without a gap, and in time.
        let numbers: Vec<u64> = events.iter().filter_map(|e| e["n"].as_u64()).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
        let times: Vec<u64> = events.iter().filter_map(|e| e["mono_us"].as_u64()).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}

claim! {
    fn the_least_record_has_decisions_and_nothing_else(cell) {
        let outcome = cell.call(shell(cell, BUSY)).flags(["--audit", "decisions"]).run();
        outcome.assert_ok();
        let events = events(cell, &outcome);
        for kind in ["process_started", "file_opened", "file_changed", "connect", "syscall"] {
            assert_eq!(of_kind(&events, kind).count(), 0, "{kind}");
        }
        let denied = texts(&events, "denied", "target");
        assert!(denied.contains(&"/usr/denied"), "{denied:?}");
        let receipt = outcome.envelope()["enforcement"].as_array().expect("a receipt").clone();
        let audit = receipt.iter().find(|e| e["control"] == "audit").expect("the record is a control");
        assert!(audit["mechanism"].as_str().is_some_and(|m| m.contains("decisions")), "{audit}");
    }
}

claim! {
    fn policy_can_ask_for_more_than_the_caller_and_never_gets_less(cell) {
        let policy = cell.file("work/policy.yaml", "version: 1\ndefaults: {audit: {level: full}, trust: allow}\n");
        let outcome = cell
            .call(shell(cell, "echo '{}'"))
            .flags(["--audit", "decisions", "--policy"])
            .flag(policy)
            .run();
        outcome.assert_ok();
        assert!(of_kind(&events(cell, &outcome), "syscall").count() > 10);
    }
}

claim! {
    fn a_denied_call_is_recorded_with_its_arguments(cell) {
        let code = "
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
libc.mount(b'what', b'/where', b'tmpfs', 0, None)
print(json.dumps({'errno': ctypes.get_errno()}))
";
        let outcome = cell.call(python(cell, code)).run();
        assert_eq!(outcome.assert_ok()["errno"], 1);
        let events = events(cell, &outcome);
        let denied = of_kind(&events, "denied").find(|e| e["data"]["target"] == "mount").expect("a denial");
        let call = &denied["data"]["syscall"];
        assert_eq!(call["args"].as_array().map(|a| a[..3].to_vec()), Some(vec![json!("what"), json!("/where"), json!("tmpfs")]));
        assert_eq!(call["errno"], 1);
    }
}

claim! {
    fn the_caller_s_name_and_request_are_in_the_record(cell) {
        let outcome = cell.call(shell(cell, "echo '{}'")).flags(["--actor", "ada", "--request-id", "r-17"]).run();
        outcome.assert_ok();
        let events = events(cell, &outcome);
        let start = of_kind(&events, "call_started").next().expect("a start");
        assert_eq!(start["data"]["actor"], "ada");
        assert_eq!(start["data"]["request_id"], "r-17");
    }
}
