//! Processes of the host: not seen, not signalled, not traced.

use serde_json::json;
use skillcell_tests::{Cell, Child, Probe, claim, sandbox_claim};

/// A process of the host that belongs to the caller.
fn bystander(cell: &Cell) -> Child {
    let mut command = cell.command("sleep");
    command.arg("59");
    Child::spawn(command, None)
}

claim! {
    fn host_processes_can_t_be_signalled(cell) {
        let bystander = bystander(cell);
        let probe = Probe::new("import os; os.kill(args['pid'], 0)").args(json!({"pid": bystander.id()}));
        cell.assert_stops(&probe);
        let probe = Probe::new("
import ctypes, os, signal
fd = os.pidfd_open(args['pid'])
signal.pidfd_send_signal(fd, 0)
").args(json!({"pid": bystander.id()}));
        cell.assert_stops(&probe);
    }
}

claim! {
    fn host_processes_can_t_be_looked_into(cell) {
        let bystander = bystander(cell);
        for name in ["cmdline", "environ", "status", "maps"] {
            let probe = Probe::new("
value = open(f\"/proc/{args['pid']}/{args['name']}\", 'rb').read().decode('utf-8', 'replace')
if 'sleep' not in value and 'HOME=' not in value:
    raise LookupError('another process')
");
            cell.assert_stops(&probe.args(json!({"pid": bystander.id(), "name": name})));
        }
    }
}

claim! {
    fn host_processes_can_t_be_traced(cell) {
        let bystander = bystander(cell);
        let probe = Probe::new("
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206
if libc.ptrace(PTRACE_SEIZE, args['pid'], 0, 0) != 0:
    raise OSError(ctypes.get_errno(), 'ptrace')
").args(json!({"pid": bystander.id()}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::OWN_PIDS;
    fn host_processes_are_invisible(cell) {
        let bystander = bystander(cell);
        let probe = Probe::new("
import os
value = [p for p in os.listdir('/proc') if p.isdigit()]
if str(args['pid']) not in value:
    raise LookupError('not in the list')
").args(json!({"pid": bystander.id()}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::OWN_PIDS;
    /// Less than a handful of processes: init, the skill, and what the skill started.
    fn the_cell_has_its_own_process_ids(cell) {
        let value = cell.probe_value(&Probe::new("
import os
value = [int(p) for p in os.listdir('/proc') if p.isdigit()]
"));
        assert!(value.as_array().is_some_and(|pids| pids.len() <= 3), "{value}");
    }
}

claim! {
    /// The cell's own init or monitor holds the call together; a skill that kills it must not get away.
    fn the_cell_s_first_process_can_t_be_signalled(cell) {
        let parent = Probe::new("
import os
pid = os.fork()
if pid == 0:
    try:
        os.kill(os.getppid(), 0)
    except OSError:
        os._exit(1)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
");
        parent.prove(cell);
        for signal in [9, 15, 19] {
            let probe = Probe::new("import os; os.kill(os.getppid(), args['signal'])").args(json!({"signal": signal}));
            let outcome = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell)).run();
            assert_eq!(outcome.assert_ok()["reached"], false, "signal {signal}\n{}", outcome.show());
        }
    }
}

claim! {
    /// An executable that is only busy now can be overwritten when it is idle: "text file busy" counts
    /// as writable.
    fn the_binary_can_t_be_overwritten_through_proc(cell) {
        let code = "
import errno, os
def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError as error:
        return error.errno == errno.ETXTBSY
if not any(writable(f'/proc/{pid}/exe') for pid in args.get('pids') or [1, os.getppid()]):
    raise PermissionError('none')
";
        let tool = cell.file("work/tool", std::fs::read("/bin/sleep").expect("there is a sleep"));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&tool, mode).expect("own file");
        let mut command = cell.command(&tool);
        command.arg("59");
        let busy = Child::spawn(command, None);
        wait_for_exec(busy.id(), &tool);
        Probe::new(code).args(json!({"pids": [busy.id()]})).prove(cell);
        let probe = Probe::new(code);
        let outcome = cell.call(skillcell_tests::Stage::get().fixture("probe")).params(&probe.params(cell)).run();
        assert_eq!(outcome.assert_ok()["reached"], false, "{}", outcome.show());
    }
}

fn wait_for_exec(pid: u32, program: &std::path::Path) {
    for _ in 0..200 {
        if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} did not start", program.display());
}
