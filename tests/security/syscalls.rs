//! System calls: what a skill never needs is denied, and the denial is told.

use serde_json::{Value, json};
use skillcell_tests::{Cell, Plain, Probe, Stage, claim};

/// Calls by number, with arguments that do no harm. `EPERM` and `ENOSYS` are a filter's answers;
/// anything else, success or not, means that the kernel looked at the arguments.
const CALL: &str = "
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(bytes(args.get('buffer', [])), 4096)
given = [ctypes.c_long(ctypes.addressof(buffer)) if a == 'buffer' else
         ctypes.c_long(os.getpid()) if a == 'pid' else ctypes.c_long(a) for a in args['call']]
result = libc.syscall(ctypes.c_long(args['number']), *given)
code = ctypes.get_errno() if result < 0 else 0
if code in (errno.EPERM, errno.ENOSYS, errno.EACCES):
    raise OSError(code, args['name'])
value = [result, errno.errorcode.get(code, 'ok')]
";

/// The answer to everybody on kernels that are built without a call: then there is nothing to prove.
const KERNEL_HAS_NOT: &str = "[Errno 38]";

struct Syscall {
    name: &'static str,
    number: i64,
    call: Value,
    plain: Plain,
}

fn call(name: &'static str, number: i64, call: Value) -> Syscall {
    Syscall {
        name,
        number,
        call,
        plain: Plain::SameUser,
    }
}

fn privileged(name: &'static str, number: i64, arguments: Value) -> Syscall {
    Syscall {
        plain: Plain::OwnNamespaces,
        ..call(name, number, arguments)
    }
}

fn root(name: &'static str, number: i64, arguments: Value) -> Syscall {
    Syscall {
        plain: Plain::Root,
        ..call(name, number, arguments)
    }
}

/// Each call is stopped, and the envelope names it.
fn assert_denied(cell: &Cell, calls: &[Syscall]) {
    for each in calls {
        let args = json!({"name": each.name, "number": each.number, "call": each.call});
        let probe = Probe::new(CALL).args(args).plain(each.plain);
        let absent = probe.run_plain(cell)["why"]
            .as_str()
            .is_some_and(|why| why.contains(KERNEL_HAS_NOT));
        let outcome = if absent {
            cell.call(Stage::get().fixture("probe"))
                .params(&probe.params(cell))
                .run()
        } else {
            cell.assert_stops(&probe)
        };
        let denial = outcome.assert_denial("syscall", each.name);
        assert_eq!(denial["reason"], "syscall_not_allowed", "{denial}");
    }
}

// Numbers of x86-64; the suite runs where the product is built first.
const CLONE_NEWNS: i64 = 0x20000;
const CLONE_NEWNET: i64 = 0x4000_0000;

claim! {
    fn new_user_namespaces_are_denied(cell) {
        let probe = Probe::new("
import subprocess
value = subprocess.run([args['tool']], capture_output=True, text=True).stdout.split()
if not any(way.endswith('=1') for way in value):
    raise PermissionError(value)
").args(json!({"tool": Stage::get().program("clone_user")}));
        assert_eq!(probe.prove(cell), json!(["clone=1", "clone3=1", "unshare=1"]), "all ways work outside");
        cell.assert_stops_with(&probe, |call| call.read(Stage::get().program("")));
    }
}

claim! {
    fn other_namespaces_are_denied(cell) {
        assert_denied(cell, &[
            privileged("unshare", 272, json!([CLONE_NEWNS])),
            privileged("unshare", 272, json!([CLONE_NEWNET])),
            call("setns", 308, json!([-1, 0])),
        ]);
    }
}

claim! {
    fn mounts_are_denied(cell) {
        assert_denied(cell, &[
            privileged("mount", 165, json!([0, 0, 0, 0, 0])),
            privileged("umount2", 166, json!([0, 0])),
            privileged("pivot_root", 155, json!([0, 0])),
            privileged("chroot", 161, json!([0])),
            call("open_tree", 428, json!([-1, 0, 0])),
            privileged("open_tree", 428, json!([-1, 0, 1])),
            privileged("move_mount", 429, json!([-1, 0, -1, 0, 0])),
            privileged("fsopen", 430, json!([0, 0])),
            privileged("fsmount", 432, json!([-1, 0, 0])),
            privileged("fspick", 433, json!([-1, 0, 255])),
            call("mount_setattr", 442, json!([-1, 0, 0, 0, 0])),
        ]);
    }
}

claim! {
    fn tracing_is_denied(cell) {
        assert_denied(cell, &[
            call("ptrace", 101, json!([0, 0, 0, 0])),
            call("process_vm_readv", 310, json!(["pid", 0, 0, 0, 0, 0])),
            call("process_vm_writev", 311, json!(["pid", 0, 0, 0, 0, 0])),
            call("pidfd_getfd", 438, json!([-1, 0, 0])),
            call("kcmp", 312, json!(["pid", "pid", 0, 0, 0])),
            call("process_madvise", 440, json!([-1, 0, 0, 0, 0])),
        ]);
    }
}

claim! {
    fn io_uring_is_denied(cell) {
        assert_denied(cell, &[
            call("io_uring_setup", 425, json!([4, "buffer"])),
            call("io_uring_enter", 426, json!([-1, 0, 0, 0, 0, 0])),
            call("io_uring_register", 427, json!([-1, 0, 0, 0])),
        ]);
    }
}

claim! {
    fn keyrings_are_denied(cell) {
        assert_denied(cell, &[
            call("keyctl", 250, json!([0, -3, 1])),
            call("add_key", 248, json!([0, 0, 0, 0, -3])),
            call("request_key", 249, json!([0, 0, 0, 0])),
        ]);
    }
}

claim! {
    fn kernel_programs_and_counters_are_denied(cell) {
        assert_denied(cell, &[
            root("bpf", 321, json!([0, "buffer", 72])),
            call("perf_event_open", 298, json!([0, 0, -1, -1, 0])),
            call("userfaultfd", 323, json!([1])),
        ]);
    }
}

claim! {
    fn machine_wide_calls_are_denied(cell) {
        assert_denied(cell, &[
            // Flags that don't exist, a magic that isn't one, pointers to nothing: harmless as root.
            root("kexec_load", 246, json!([0, 0, 0, 0x7fff_ffff])),
            root("init_module", 175, json!([0, 0, 0])),
            root("finit_module", 313, json!([-1, 0, 0])),
            root("delete_module", 176, json!([0, 0])),
            root("reboot", 169, json!([1, 2, 3, 0])),
            root("swapon", 167, json!([0, 0])),
            root("acct", 163, json!([1])),
            root("open_by_handle_at", 304, json!([-1, 0, 0])),
            root("clock_settime", 227, json!([-1, 0])),
            root("settimeofday", 164, json!([1, 0])),
            root("sethostname", 170, json!([1, -1])),
            root("fanotify_init", 300, json!([0x7fff_ffff, 0])),
            root("quotactl", 179, json!([-1, 0, 0, 0])),
            call("personality", 135, json!([0x0004_0000])),
            call("modify_ldt", 154, json!([0, 0, 0])),
        ]);
    }
}

/// The 32-bit gate has other numbers, which a filter for 64-bit numbers would misread.
#[cfg(target_arch = "x86_64")]
mod foreign {
    use super::*;

    const RUN: &str = "
import subprocess
done = subprocess.run([args['tool']], capture_output=True, text=True)
if done.returncode != 0:
    raise PermissionError(f'{done.returncode} {done.stdout}')
value = done.stdout
";

    claim! {
        fn calls_through_the_32_bit_gate_are_denied(cell) {
            let probe = Probe::new(RUN).args(json!({"tool": Stage::get().program("int80")}));
            cell.assert_stops_with(&probe, |call| call.read(Stage::get().program("")));
        }
    }

    claim! {
        /// Many kernels have no x32, and answer ENOSYS to everybody: then there is nothing to prove.
        fn x32_calls_are_denied(cell) {
            let probe = Probe::new(RUN).args(json!({"tool": Stage::get().program("x32")}));
            let outside = probe.run_plain(cell);
            let absent = outside["why"].as_str().is_some_and(|why| why.contains("not implemented"));
            assert!(absent || outside["reached"] == true, "{outside}");
            let call = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell));
            let outcome = call.read(Stage::get().program("")).run();
            assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
        }
    }
}

claim! {
    /// Statically linked programs meet the same filter: nothing depends on a preloaded library.
    fn static_programs_run_and_are_held_too(cell) {
        let probe = Probe::new("
import subprocess
value = subprocess.run([args['tool']], capture_output=True, text=True).stdout.strip()
").args(json!({"tool": Stage::get().program("whoami")}));
        let value = cell.probe_value_with(&probe, |call| call.read(Stage::get().program("")));
        assert!(value.as_str().is_some_and(|id| id.parse::<u32>().is_ok_and(|id| id != 0)), "{value}");
    }
}
