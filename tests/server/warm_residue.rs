//! Nothing that a call did is there for the next one: pairs of calls of one skill, the first leaves
//! a trace of some kind, the second looks for it.

use crate::cell;
use crate::warm::{result, start};
use serde_json::json;
use skillcell_tests::alone;

/// Kind, how a trace is left, and what is true where one is found.
const TRACES: &[(&str, &str, &str)] = &[
    ("global", "STATE.append(1)", "bool(STATE)"),
    (
        "module",
        "sys.modules['planted'] = sys",
        "'planted' in sys.modules",
    ),
    (
        "builtin",
        "import builtins; builtins.planted = 1",
        "hasattr(__import__('builtins'), 'planted')",
    ),
    (
        "environment",
        "os.environ['PLANTED'] = '1'",
        "'PLANTED' in os.environ",
    ),
    ("folder", "os.chdir('/dev')", "os.getcwd() != '/scratch'"),
    ("umask", "os.umask(0o77)", "os.umask(0o22) != 0o22"),
    (
        "scratch",
        "open('/scratch/planted', 'w').close()",
        "os.path.exists('/scratch/planted')",
    ),
    (
        "tmp",
        "open('/tmp/planted', 'w').close()",
        "os.path.exists('/tmp/planted')",
    ),
    (
        "shared memory",
        "open('/dev/shm/planted', 'w').close()",
        "os.listdir('/dev/shm') != []",
    ),
    (
        "handler",
        "signal.signal(signal.SIGUSR1, lambda *a: None)",
        "signal.getsignal(signal.SIGUSR1) != signal.SIG_DFL",
    ),
    (
        "mask",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])",
        "signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, [])",
    ),
    (
        "timer",
        "signal.setitimer(signal.ITIMER_VIRTUAL, 100)",
        "signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0",
    ),
    (
        "limit",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))",
        "resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 50",
    ),
    (
        "descriptor",
        "os.dup2(os.open('/dev/null', os.O_RDONLY), 77)",
        "os.path.exists('/proc/self/fd/77')",
    ),
    (
        "port",
        "KEPT = socket.socket(); KEPT.bind(('127.0.0.1', 7777)); KEPT.listen()",
        "socket.socket().connect_ex(('127.0.0.1', 7777)) == 0",
    ),
    (
        "abstract socket",
        "KEPT = socket.socket(socket.AF_UNIX); KEPT.bind('\\0planted'); KEPT.listen()",
        "socket.socket(socket.AF_UNIX).connect_ex('\\0planted') == 0",
    ),
    (
        "process",
        "subprocess.Popen(['sleep', '30'], start_new_session=True)",
        "sum(p.isdigit() for p in os.listdir('/proc')) > 2",
    ),
    (
        "daemon",
        "if os.fork() == 0:\n    os.setsid()\n    os.fork() or time.sleep(30)\n    os._exit(0)",
        "sum(p.isdigit() for p in os.listdir('/proc')) > 2",
    ),
    (
        "random state",
        "random.seed(1)",
        "random.random() == random.Random(1).random()",
    ),
    (
        "name",
        "open('/proc/self/comm', 'w').write('planted') if os.access('/proc/self/comm', os.W_OK) else ctypes.CDLL(None).prctl(15, b'planted', 0, 0, 0)",
        "open('/proc/self/comm').read().startswith('planted')",
    ),
    (
        "queue",
        "ctypes.CDLL(None).mq_open(b'/planted', os.O_CREAT, 0o600, None)",
        "ctypes.CDLL(None).mq_open(b'/planted', 0, 0, None) >= 0",
    ),
    (
        "segment",
        "ctypes.CDLL(None).shmget(4242, 4096, 0o1600)",
        "ctypes.CDLL(None).shmget(4242, 4096, 0) >= 0",
    ),
];

const PAIRS: usize = 1000;

#[test]
fn no_call_finds_a_trace_of_another() {
    let _alone = alone();
    let cell = cell();
    let daemon = start(&cell);
    let skill = cell.bundle(
        "subject",
        &[
            ("manifest.yaml", "name: subject\nversion: 1.0.0\n"),
            (
                "skill.py",
                "import ctypes, os, random, resource, signal, socket, subprocess, sys, time\n\
                 STATE = []\n\
                 class Subject:\n    def execute(self, params):\n        \
                 if 'do' in params: exec(params['do'], globals())\n        \
                 return eval(params['see'], globals())\n",
            ),
        ],
    );
    // The probe sees what is there: in one call each trace is found.
    for (kind, leave, found) in TRACES {
        let seen = result(&daemon, &skill, json!({"do": leave, "see": found}));
        let denied_anyway = ["queue", "segment"].contains(kind);
        assert!(
            seen == true || denied_anyway,
            "{kind} leaves no trace to find"
        );
    }
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for pair in 0..PAIRS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (kind, leave, found) = TRACES[(random % TRACES.len() as u64) as usize];
        result(&daemon, &skill, json!({"do": leave, "see": "None"}));
        let seen = result(&daemon, &skill, json!({"see": found}));
        assert_eq!(seen, false, "{kind} of pair {pair} was found");
    }
}
