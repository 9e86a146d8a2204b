//! Floods: of scratch, of inodes, of output.

use skillcell_tests::{Cell, Outcome, Probe, claim};
use std::time::Duration;

fn run(cell: &Cell, policy: &str, code: &str) -> Outcome {
    let probe = Probe::new(code);
    let outcome = cell
        .call(cell.probe_with(policy))
        .params(&probe.raw_params(cell))
        .run();
    assert!(
        outcome.elapsed < Duration::from_secs(30),
        "took too long\n{}",
        outcome.show()
    );
    outcome
}

claim! {
    fn scratch_can_t_be_filled_beyond_its_size(cell) {
        let fill = |mib: u32| format!("
import tempfile
with tempfile.NamedTemporaryFile() as file:
    for _ in range({mib}):
        file.write(bytes(1 << 20)); file.flush()
");
        Probe::new(&fill(24)).prove(cell);
        let policy = "filesystem: {scratch: 16MiB}\nresources: {timeout: 20s, memory: 256MiB}";
        let outcome = run(cell, policy, &fill(2048));
        outcome.assert_limit(&["scratch_exceeded"]);
    }
}

claim! {
    /// Scratch is one budget, wherever in it the files are.
    fn scratch_is_one_budget_over_all_its_folders(cell) {
        let code = "
import os, tempfile
folders = set()
for folder in ('/scratch', '/tmp', '/dev/shm', tempfile.gettempdir(), os.path.expanduser('~')):
    try:
        open(os.path.join(folder, 'part'), 'wb').close()
        folders.add(folder)
    except OSError:
        pass
for index in range(200):
    for folder in folders:
        with open(os.path.join(folder, f'part{index}'), 'wb') as file:
            file.write(bytes(1 << 20))
";
        let policy = "filesystem: {scratch: 16MiB}\nresources: {timeout: 20s, memory: 256MiB}";
        run(cell, policy, code).assert_limit(&["scratch_exceeded"]);
        Probe::new("
import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    for index in range(20):
        open(os.path.join(folder, str(index)), 'wb').write(bytes(1 << 20))
").prove(cell);
    }
}

claim! {
    fn inodes_can_t_be_used_up(cell) {
        let fill = |count: u32| format!("
import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    for index in range({count}):
        os.close(os.open(os.path.join(folder, str(index)), os.O_CREAT | os.O_WRONLY))
");
        Probe::new(&fill(1000)).prove(cell);
        let policy = "filesystem: {scratch: 16MiB}\nresources: {timeout: 25s, memory: 512MiB}";
        run(cell, policy, &fill(3_000_000)).assert_limit(&["scratch_exceeded", "memory_exceeded", "timeout_exceeded"]);
    }
}

claim! {
    /// A hole is no data, and a size is no promise.
    fn a_huge_sparse_file_in_scratch_does_no_harm(cell) {
        let outcome = run(cell, "filesystem: {scratch: 16MiB}", "
import tempfile
with tempfile.NamedTemporaryFile() as file:
    try:
        file.truncate(1 << 40)
        value = 'made'
    except OSError as error:
        value = str(error)
");
        assert!(matches!(outcome.status(), "ok" | "limit_exceeded"), "{}", outcome.show());
    }
}

claim! {
    fn an_output_flood_ends_at_the_limit(cell) {
        let flood = |mib: &str, stream: &str| format!("
import sys
n = 0
while n < {mib}:
    sys.{stream}.write('x' * (1 << 20)); n += 1
");
        for stream in ["stdout", "stderr"] {
            // Outside the probe's own stdout is the answer, so only stderr can be shown to pass.
            Probe::new(&flood("8", "stderr")).prove(cell);
            let outcome = run(cell, "resources: {output: 1MiB, timeout: 20s}", &flood("float('inf')", stream));
            outcome.assert_limit(&["output_exceeded"]);
            assert!(outcome.stdout.len() < 16 << 20, "the envelope has {} bytes", outcome.stdout.len());
        }
    }
}

claim! {
    fn a_flood_from_a_child_is_bounded_too(cell) {
        let outcome = run(cell, "resources: {output: 1MiB, timeout: 10s, processes: 8}", "
import subprocess
subprocess.run(['sh', '-c', 'while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done'])
");
        outcome.assert_limit(&["output_exceeded", "timeout_exceeded"]);
        assert!(outcome.stdout.len() < 16 << 20, "the envelope has {} bytes", outcome.stdout.len());
    }
}

claim! {
    /// Params go in and results come out on descriptors of their own: a skill that fills its output
    /// before it reads, or never reads, can't block the supervisor.
    fn a_skill_that_never_reads_its_params_can_t_hang_the_supervisor(cell) {
        let bundle = cell.bundle("deaf", &[
            ("manifest.yaml", "name: deaf\nversion: 1.0.0\nexecution: {command: [sleep, \"3600\"]}\nsecurity_policy: {version: 1, resources: {timeout: 2s}}\n"),
        ]);
        let params = cell.file("work/params.json", format!("{{\"x\": \"{}\"}}", "y".repeat(1 << 20)));
        let outcome = cell.call(&bundle).flag("--params-file").flag(&params).run();
        outcome.assert_limit(&["timeout_exceeded"]);
        assert!(outcome.elapsed < Duration::from_secs(6), "{}", outcome.show());
    }
}
