//! One call, one cell: nothing outlives a call, nothing carries over to the next.

use serde_json::json;
use skillcell_tests::{Cell, Probe, Stage, claim};
use std::time::Duration;

claim! {
    /// The leak check after every call looks for the processes; here is one that tries hard to stay.
    fn double_forked_daemons_end_with_the_call(cell) {
        let daemon = "
import os, signal, time
def daemonise(depth):
    if os.fork():
        return
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if depth:
        daemonise(depth - 1)
        os._exit(0)
    for fd in range(64):
        try: os.close(fd)
        except OSError: pass
    time.sleep(args['seconds'])
    os._exit(0)
for _ in range(3):
    daemonise(3)
time.sleep(0.3)
value = 'answered'
";
        // Outside they outlive their parent; the suite sees them by name, and waits for them.
        Probe::new(daemon).args(json!({"seconds": 2})).prove(cell);
        assert_eq!(skillcell_tests::processes_named(cell.mark()).len(), 3, "the counter-proof: daemons stay");
        while !skillcell_tests::processes_named(cell.mark()).is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let value = cell.probe_value(&Probe::new(daemon).args(json!({"seconds": 50})));
        assert_eq!(value, "answered");
    }
}

claim! {
    /// The result is there when the skill has answered, whatever its children still hold open.
    fn children_that_hold_the_output_open_don_t_delay_the_answer(cell) {
        let probe = Probe::new("
import subprocess
subprocess.Popen(['sleep', '50'], start_new_session=True)
value = 'answered'
");
        let outcome = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).run();
        assert_eq!(outcome.assert_ok()["value"], "answered");
        assert!(outcome.elapsed < Duration::from_secs(10), "{}", outcome.show());
    }
}

/// A key that no other test uses.
fn key(cell: &Cell) -> u32 {
    cell.mark().bytes().fold(7, |key: u32, byte| {
        key.wrapping_mul(31).wrapping_add(byte.into())
    }) & 0x7fff_ffff
}

/// Plants something in one call and looks for it in the next. `clean` removes what the counter-proof
/// planted on the host.
fn assert_forgotten(cell: &Cell, plant: &str, look: &str, clean: impl Fn(&Cell)) {
    let args = json!({"name": cell.mark(), "key": key(cell)});
    Probe::new(plant).args(args.clone()).prove(cell);
    Probe::new(look).args(args.clone()).prove(cell);
    clean(cell);
    let probe = Stage::get().fixture("probe");
    // Planting may fail in the cell; what counts is that the next call finds nothing.
    cell.call(&probe)
        .params(&Probe::new(plant).args(args.clone()).params(cell))
        .run()
        .assert_ok();
    let outcome = cell
        .call(&probe)
        .params(&Probe::new(look).args(args).params(cell))
        .run();
    assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
}

claim! {
    fn files_are_forgotten(cell) {
        for folder in ["tempfile.gettempdir()", "'/tmp'", "'/dev/shm'", "os.path.expanduser('~')", "os.getcwd()"] {
            let path = format!("import os, tempfile\npath = os.path.join({folder}, args['name'])\n");
            let plant = format!("{path}open(path, 'w').write('planted')");
            let look = format!("{path}assert open(path).read() == 'planted'");
            assert_forgotten(cell, &plant, &look, remove_files);
        }
    }
}

fn remove_files(cell: &Cell) {
    let own = ["tmp", "home", "work"].map(|name| cell.path(name));
    for folder in own.into_iter().chain(["/tmp".into(), "/dev/shm".into()]) {
        std::fs::remove_file(folder.join(cell.mark())).unwrap_or_default();
    }
}

const SYSV: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def check(result, name):
    if result in (-1, None, 2**64 - 1):
        raise OSError(ctypes.get_errno(), name)
    return result
IPC_CREAT, IPC_RMID = 0o1000, 0
";

claim! {
    fn shared_memory_is_forgotten(cell) {
        let plant = format!("{SYSV}
segment = check(libc.shmget(args['key'], 4096, IPC_CREAT | 0o600), 'shmget')
ctypes.memmove(check(libc.shmat(segment, None, 0), 'shmat'), b'planted', 7)");
        let look = format!("{SYSV}
segment = check(libc.shmget(args['key'], 4096, 0o600), 'shmget')
assert ctypes.string_at(check(libc.shmat(segment, None, 0), 'shmat'), 7) == b'planted'
");
        assert_forgotten(cell, &plant, &look, |cell| remove_ipc(cell, "-M"));
    }
}

claim! {
    fn message_queues_are_forgotten(cell) {
        let plant = format!("{SYSV}check(libc.msgget(args['key'], IPC_CREAT | 0o600), 'msgget')");
        let look = format!("{SYSV}check(libc.msgget(args['key'], 0o600), 'msgget')");
        assert_forgotten(cell, &plant, &look, |cell| remove_ipc(cell, "-Q"));
    }
}

/// The counter-proof's own, left on the host.
fn remove_ipc(cell: &Cell, kind: &str) {
    let mut command = cell.command("ipcrm");
    command.args([kind, &key(cell).to_string()]);
    skillcell_tests::Child::spawn(command, None)
        .finish()
        .expect_success("ipcrm");
}

claim! {
    /// Two cells at the same time don't meet, either.
    fn cells_that_run_at_the_same_time_don_t_meet(cell) {
        let other = Cell::new(cell.level, cell.user);
        let listen = Probe::new("
import os, socket, tempfile, time
open(os.path.join(tempfile.gettempdir(), args['name']), 'w').write('planted')
try:
    s = socket.socket(socket.AF_UNIX); s.bind('\\0' + args['name']); s.listen()
except OSError:
    pass
time.sleep(8)
").args(json!({"name": other.mark()}));
        let running = other.call(Stage::get().fixture("probe")).params(&listen.params(&other)).start();
        let pid = running.skill_processes(1)[0];
        std::thread::sleep(Duration::from_millis(300));
        let meet = Probe::new("
import os, socket, tempfile
found = []
for name, act in {
    'file': lambda: open(os.path.join(tempfile.gettempdir(), args['name'])).read(),
    'socket': lambda: socket.socket(socket.AF_UNIX).connect('\\0' + args['name']),
    'signal': lambda: os.kill(args['pid'], 0),
}.items():
    try:
        act(); found.append(name)
    except OSError:
        pass
value = found
").args(json!({"name": other.mark(), "pid": pid}));
        assert_eq!(cell.probe_value(&meet), json!([]));
        let finished = running.finish();
        assert!(finished.status.success(), "{} {}", finished.stdout, finished.stderr);
    }
}
