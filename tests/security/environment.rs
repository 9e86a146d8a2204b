//! Variables: only what is declared and granted.

use serde_json::json;
use skillcell_tests::{Plain, Probe, Stage, claim};

const SECRET: &str = "s3cret-of-the-host";

claim! {
    fn host_environment_is_unreachable(cell) {
        let probe = Probe::new("
import os
places = ['\\0'.join(f'{k}={v}' for k, v in os.environ.items())]
for pid in ['self', '1', str(os.getppid())] + [p for p in os.listdir('/proc') if p.isdigit()]:
    try:
        places.append(open(f'/proc/{pid}/environ').read())
    except OSError:
        pass
if not any(args['secret'] in place for place in places):
    raise LookupError('not found')
").args(json!({"secret": SECRET}));
        // The counter-proof runs as a child of a process that has the secret.
        let plain = Probe::new("
import os, subprocess, sys
os.environ['HOST_SECRET'] = args['secret']
code = \"import os; print(os.environ['HOST_SECRET'] in open('/proc/self/environ').read())\"
value = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout
assert value == 'True\\n', value
").args(json!({"secret": SECRET}));
        plain.prove(cell);
        let outcome = cell
            .call(Stage::get().fixture("probe"))
            .params(&json!({"code": probe.code(), "args": {"secret": SECRET}}))
            .host_env("HOST_SECRET", SECRET)
            .run();
        // The params hold the secret too, but no process has them on its command line or environment.
        assert_ne!(outcome.result()["reached"], true, "{}", outcome.show());
    }
}

claim! {
    fn only_declared_and_granted_variables_are_inside(cell) {
        let bundle = cell.bundle("env", &[
            ("manifest.yaml", "name: env\nversion: 1.0.0\nenv_vars:\n  WANTED:\n    description: wanted\n    required: false\n"),
            ("skill.py", "import os\nclass Env:\n    def execute(self, params):\n        return dict(os.environ)\n"),
        ]);
        let call = || cell.call(&bundle).flags(["--params", "{}"]).host_env("WANTED", "host").host_env("OTHER", "x");
        // Declared alone is not granted.
        let silent = call().run();
        assert!(silent.assert_ok().get("WANTED").is_none(), "{}", silent.show());
        let granted = call().flags(["--env", "WANTED"]).run();
        assert_eq!(granted.assert_ok()["WANTED"], "host", "{}", granted.show());
        let given = call().flags(["--env", "WANTED=given"]).run();
        assert_eq!(given.assert_ok()["WANTED"], "given", "{}", given.show());
        // Granted but not declared is told, not passed.
        let undeclared = call().flags(["--env", "OTHER"]).run();
        assert!(undeclared.result().get("OTHER").is_none(), "{}", undeclared.show());
        undeclared.assert_denial("env", "OTHER");
        for outcome in [silent, granted, given, undeclared] {
            let names: Vec<_> = outcome.result().as_object().expect("an object").keys().cloned().collect();
            let unexpected = ["TMPDIR_HOST", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "USER", "LOGNAME"];
            assert!(!names.iter().any(|n| unexpected.contains(&n.as_str())), "{names:?}");
        }
    }
}

claim! {
    fn variables_that_steer_the_loader_can_t_be_granted(cell) {
        for name in ["LD_PRELOAD=/x.so", "PYTHONPATH=/x", "PATH=/x", "BASH_ENV=/x"] {
            let outcome = cell.call(Stage::get().fixture("probe")).flags(["--params", "{\"code\": \"\"}", "--env", name]).run();
            assert_eq!(outcome.code, 2, "{name}\n{}", outcome.show());
        }
    }
}

claim! {
    /// PID 1 of the cell came from the supervisor, whose environment and memory hold the host's secrets.
    fn the_first_process_has_no_environment_to_read(cell) {
        let probe = Probe::new("
value = open('/proc/1/environ').read()
if not value:
    raise LookupError('empty')
").plain(Plain::FirstProcess);
        cell.assert_stops(&probe);
    }
}

claim! {
    fn memory_of_other_processes_is_unreadable(cell) {
        let probe = Probe::new("
import os
pids = [1, os.getppid()] if args['cell'] else [os.getpid()]
for pid in pids:
    for name in ('mem', 'maps', 'environ', 'auxv', 'stack', 'syscall', 'fd'):
        path = f'/proc/{pid}/{name}'
        try:
            if name == 'fd':  # how many there are is no secret, what they are is
                data = [os.readlink(f'{path}/{fd}') for fd in os.listdir(path)]
            else:
                data = open(path, 'rb').read(64) if name != 'mem' else open(path, 'r+b')
        except OSError:
            continue
        if data:
            value = path
            break
    else:
        continue
    break
else:
    raise PermissionError('all closed')
");
        let code = probe.code().to_owned();
        Probe::new(&code).args(json!({"cell": false})).prove(cell);
        let probe = Probe::new(&code).args(json!({"cell": true}));
        let outcome = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}
