//! Descriptors: only the five that the contract names.

use serde_json::json;
use skillcell_tests::{Child, Probe, Stage, claim};

/// Opens a file as descriptor 7 and then becomes the program that follows.
const WITH_DESCRIPTOR: &str = "exec 7<\"$0\"; exec \"$@\"";

claim! {
    fn inherited_descriptors_are_closed(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        let probe = Probe::new("import os; value = os.read(7, 6).decode(); assert value == 'secret', value");
        let mut plain = cell.command("sh");
        plain.args(["-c", WITH_DESCRIPTOR]).arg(&secret).arg("python3").arg("-B");
        plain.arg(Stage::get().fixture("probe").join("skill.py"));
        let seen = Child::spawn(plain, Some(probe.params(cell).to_string().as_bytes())).finish();
        assert!(seen.stdout.contains("\"reached\": true"), "{} {}", seen.stdout, seen.stderr);
        let outcome = cell
            .call(Stage::get().fixture("probe"))
            .params(&probe.params(cell))
            .through(["sh".as_ref(), "-c".as_ref(), WITH_DESCRIPTOR.as_ref(), secret.as_os_str()])
            .run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}

claim! {
    fn only_the_contract_s_descriptors_are_open(cell) {
        let value = cell.probe_value(&Probe::new("
import os
value = []
for fd in range(4096):
    try:
        os.fstat(fd)
        value.append(fd)
    except OSError:
        pass
"));
        for fd in value.as_array().expect("a list") {
            assert!(fd.as_u64().is_some_and(|fd| fd <= 4), "descriptor {fd} is open: {value}");
        }
    }
}

claim! {
    /// A descriptor of a folder outside would be a way around the whole file system.
    fn no_open_descriptor_leads_out(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        let probe = Probe::new("
import os
for fd in range(64):
    try:
        found = os.open('..' + args['path'], os.O_RDONLY, dir_fd=fd)
    except OSError:
        continue
    value = os.read(found, 6).decode()
    break
else:
    raise LookupError('no way out')
").args(json!({"path": secret}));
        let opened = Probe::new(&format!("import os; os.open('/', os.O_RDONLY)\n{}", probe.code()));
        opened.args(json!({"path": secret})).prove(cell);
        let outcome = cell
            .call(Stage::get().fixture("probe"))
            .params(&probe.params(cell))
            .through(["sh", "-c", WITH_DESCRIPTOR, "/"])
            .run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}

claim! {
    /// What a skill types into the caller's terminal, the caller's shell would run.
    fn the_caller_s_terminal_is_unreachable(cell) {
        let probe = Probe::new("
import os
value = os.open('/dev/tty', os.O_RDWR | os.O_NOCTTY)
");
        let under_terminal = |program: String| {
            let mut command = cell.command("script");
            command.args(["-qec", &program, "/dev/null"]);
            Child::spawn(command, None).finish()
        };
        let params = cell.file("work/params.json", probe.params(cell).to_string());
        let (out, skill) = (cell.path("work/out.json"), Stage::get().fixture("probe"));
        let plain = under_terminal(format!(
            "python3 -B {}/skill.py < {} > {}",
            skill.display(),
            params.display(),
            out.display()
        ));
        let seen = std::fs::read_to_string(&out).unwrap_or_default();
        assert!(seen.contains("\"reached\": true"), "the counter-proof fails: {seen} {} {}", plain.stdout, plain.stderr);
        let level = if cell.level == skillcell_tests::Level::Process { "--isolation process --trust" } else { "" };
        under_terminal(format!(
            "{} run {} --json {level} --params-file {} > {}",
            Stage::get().binary().display(),
            skill.display(),
            params.display(),
            out.display()
        ));
        let seen = std::fs::read_to_string(&out).expect("the call wrote an envelope");
        let envelope: serde_json::Value = serde_json::from_str(&seen).unwrap_or_else(|e| panic!("{e}: {seen}"));
        assert_eq!(envelope["result"]["reached"], false, "{envelope}");
    }
}

claim! {
    fn nothing_can_be_typed_into_a_terminal(cell) {
        let probe = Probe::new("
import fcntl, os, termios
leader, follower = os.openpty()
pid = os.fork()
if pid == 0:
    try:
        os.setsid()
        fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        fcntl.ioctl(follower, termios.TIOCSTI, b'x')
    except BaseException:
        os._exit(1)
    os._exit(0)
if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
    raise PermissionError('TIOCSTI')
");
        // Newer kernels can refuse this to everybody.
        let off = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|v| v.trim() == "0");
        if !off {
            probe.prove(cell);
        }
        let outcome = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}
