//! Words that a skill chose, on their way through the log to a terminal.

use crate::{assert_whole, events, of_kind, python};
use skillcell_tests::claim;

const NAMES: &str = r#"
import os, json, subprocess
os.chdir(os.environ.get('TMPDIR', '/tmp'))
for name in [b'new\nline', b'esc\x1b[2J\x1b]0;owned\x07', b'bad\xff\xfeutf8', 'r\u202etl\u200b'.encode(), b'quote"\\back', b'\xc2\x85next']:
    open(name, 'w').close()
    os.unlink(name)
subprocess.run(['/bin/true', 'a' * 65536, '\x1b[31mred', 'two\nlines', b'\xff\x00'[:1]])
print(json.dumps({'ok': True}))
"#;

claim! {
    fn hostile_words_stay_on_one_line_and_off_the_terminal(cell) {
        let outcome = cell.call(python(cell, NAMES)).flags(["--audit", "full"]).run();
        outcome.assert_ok();
        // Each line is one event; reading them as JSON is part of this.
        let events = events(cell, &outcome);
        assert_eq!(Some(events.len() as u64), outcome.envelope()["audit"]["events"].as_u64());
        let paths: Vec<&str> = of_kind(&events, "file_opened").filter_map(|e| e["data"]["path"].as_str()).collect();
        assert!(paths.iter().any(|p| p.ends_with("/new\nline")), "{paths:?}");
        assert!(paths.iter().any(|p| p.ends_with("/bad\\xff\\xfeutf8")), "{paths:?}");
        let long = of_kind(&events, "process_started")
            .find_map(|e| e["data"]["argv"][1].as_str().filter(|a| a.starts_with("aaaa")))
            .expect("the long argument");
        assert!(long.len() < 5000 && long.contains("65536 bytes"), "{}", long.len());
        assert_whole(cell);
        let run = outcome.run_id().expect("an id");
        for arguments in [
            vec!["audit", "show", run, "--all"],
            vec!["audit", "tail", "-n", "1000"],
            vec!["audit", "search", "--run", run],
        ] {
            let shown = cell.skillcell(&arguments);
            assert_eq!(shown.code, 0, "{}", shown.show());
            for bad in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\u{85}'] {
                assert!(!shown.stdout.contains(bad), "{arguments:?} shows {bad:?}");
            }
            assert!(!shown.stdout.contains("new\nline"), "{arguments:?} breaks a line");
        }
    }
}

claim! {
    /// By their value, wherever they turn up: in arguments, file names, names that are looked up.
    fn values_of_variables_are_not_in_the_record(cell) {
        let skill = cell.bundle("keeper", &[
            ("manifest.yaml", "name: keeper\nversion: 1.0.0\nexecution: {command: [python3, main.py]}\nsecurity_policy: {version: 1, env: [API_TOKEN]}\n"),
            ("main.py", "
import os, socket, subprocess, json
token = os.environ['API_TOKEN']
subprocess.run(['/bin/echo', '--token=' + token], stdout=subprocess.DEVNULL)
open(os.environ.get('TMPDIR', '/tmp') + '/' + token, 'w').close()
try:
    open('/usr/' + token, 'w')
except OSError:
    pass
try:
    socket.gethostbyname(token + '.example.com')
except OSError:
    pass
print(json.dumps({'ok': True}))
"),
        ]);
        let outcome = cell.call(skill).flags(["--audit", "full", "--env", "API_TOKEN=s3cr3t-v4lue"]).run();
        outcome.assert_ok();
        let text: String = events(cell, &outcome).iter().map(|e| e.to_string()).collect();
        assert!(text.contains("[redacted API_TOKEN]"), "the places are recorded");
        assert!(!text.contains("s3cr3t-v4lue"), "{}", &text[text.find("s3cr3t-v4lue").unwrap_or(0)..][..200]);
    }
}
