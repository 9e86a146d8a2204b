//! Outputs: what a skill plants where the host will look never makes the host read or write elsewhere.

use serde_json::{Value, json};
use skillcell_tests::{Cell, Outcome, Probe, claim};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

const POLICY: &str = "filesystem: {params: {output_path: write, input_path: read}, scratch: 32MiB}\nresources: {timeout: 15s}";

/// The same code with the same params, outside a cell.
fn prove(cell: &Cell, code: &str, output: &Path) {
    let code = format!("params = {{'output_path': args['output']}}\n{code}");
    Probe::new(&code)
        .args(json!({"output": output, "victim": cell.path("work/victim/file.txt")}))
        .prove(cell);
}

fn run(cell: &Cell, code: &str, output: &Path) -> Outcome {
    let params = json!({
        "code": code, "mark": cell.mark(), "raw": true, "output_path": output,
        "args": {"victim": cell.path("work/victim/file.txt")},
    });
    cell.call(cell.probe_with(POLICY))
        .params(&params)
        .write(output)
        .run()
}

fn victim(cell: &Cell) -> std::path::PathBuf {
    cell.file("work/victim/file.txt", "untouched")
}

#[track_caller]
fn assert_untouched(victim: &Path, outcome: &Outcome) {
    assert_eq!(
        fs::read_to_string(victim).expect("still there"),
        "untouched",
        "{}",
        outcome.show()
    );
    let folder = victim.parent().expect("a folder");
    assert_eq!(
        fs::read_dir(folder).expect("still there").count(),
        1,
        "planted beside it\n{}",
        outcome.show()
    );
}

claim! {
    fn a_granted_output_appears_at_its_host_path(cell) {
        let output = cell.folder("work/out").join("report.txt");
        let outcome = run(cell, "open(params['output_path'], 'w').write('report'); value = params['output_path']", &output);
        assert_eq!(outcome.assert_ok(), &Value::from(output.to_str().expect("text")));
        assert_eq!(fs::read_to_string(&output).expect("written"), "report");
        let meta = fs::metadata(&output).expect("written");
        assert_eq!(meta.uid(), cell.user.uid(), "the caller's own file");
        assert_eq!(meta.mode() & 0o7133, 0, "no special or executable bits: {:o}", meta.mode());
        assert_eq!(fs::read_dir(cell.path("work/out")).expect("own folder").count(), 1, "no temporary file beside it");
    }
}

claim! {
    /// All or nothing: the old file stays as it was until the call has succeeded.
    fn a_failed_call_leaves_the_old_output(cell) {
        let output = cell.file("work/out/report.txt", "old");
        let code = "open(params['output_path'], 'w').write('half'); raise RuntimeError('no more')";
        let outcome = run(cell, code, &output);
        outcome.assert_status("skill_error", 1);
        assert_eq!(fs::read_to_string(&output).expect("still there"), "old", "{}", outcome.show());
        assert_eq!(fs::read_dir(cell.path("work/out")).expect("own folder").count(), 1);
    }
}

claim! {
    fn a_symlink_at_the_output_path_is_never_carried_out(cell) {
        let victim = victim(cell);
        for target in [victim.to_str().expect("text"), "../victim/file.txt", "/etc/hostname", "nowhere", "."] {
            let output = cell.folder("work/out").join("report.txt");
            let code = format!("
import os
try: os.unlink(params['output_path'])
except FileNotFoundError: pass
os.symlink('{target}', params['output_path'])
");
            prove(cell, &code, &output);
            assert!(fs::symlink_metadata(&output).expect("the counter-proof").is_symlink());
            fs::remove_file(&output).expect("own file");
            let outcome = run(cell, &code, &output);
            assert!(fs::symlink_metadata(&output).is_err(), "{target} was carried out\n{}", outcome.show());
            assert_ne!(outcome.status(), "internal_error", "{}", outcome.show());
            assert!(!outcome.denials().is_empty(), "not told\n{}", outcome.show());
            assert_untouched(&victim, &outcome);
        }
    }
}

claim! {
    /// What an earlier run or another program left at the output path.
    fn a_symlink_of_the_host_in_the_output_folder_is_not_followed(cell) {
        let victim = victim(cell);
        let folder = cell.folder("work/out");
        let code = "
import os
path = os.path.join(params['output_path'], 'report.txt')
if os.path.islink(path) and args.get('careful'): os.unlink(path)
open(path, 'w').write('overwritten')
";
        symlink(&victim, folder.join("report.txt")).expect("own folder");
        prove(cell, code, &folder);
        assert_eq!(fs::read_to_string(&victim).expect("still there"), "overwritten", "the counter-proof");
        let victim = self::victim(cell);
        let outcome = run(cell, code, &folder);
        assert_untouched(&victim, &outcome);
    }
}

claim! {
    fn folder_symlinks_in_an_output_folder_lead_nowhere(cell) {
        let victim = victim(cell);
        let folder = cell.folder("work/out");
        let code = "
import os
os.symlink(os.path.dirname(args['victim']), os.path.join(params['output_path'], 'link'))
try:
    open(os.path.join(params['output_path'], 'link', 'file.txt'), 'w').write('overwritten')
except OSError:
    pass
";
        prove(cell, code, &folder);
        assert_eq!(fs::read_to_string(&victim).expect("still there"), "overwritten", "the counter-proof");
        fs::remove_file(folder.join("link")).expect("own link");
        let victim = self::victim(cell);
        // Twice: what the first call planted is there for the second.
        for code in [code, "
import os
link = os.path.join(params['output_path'], 'link')
os.makedirs(link, exist_ok=True)
open(os.path.join(link, 'file.txt'), 'w').write('overwritten')
"] {
            let outcome = run(cell, code, &folder);
            assert_untouched(&victim, &outcome);
            assert_ne!(outcome.status(), "internal_error", "{}", outcome.show());
        }
    }
}

claim! {
    /// A folder of the output that turns into a symlink of the host between two calls.
    fn a_host_symlink_in_place_of_an_output_subfolder_is_not_followed(cell) {
        let victim = victim(cell);
        let folder = cell.folder("work/out");
        symlink(victim.parent().expect("a folder"), folder.join("sub")).expect("own folder");
        let outcome = run(cell, "
import os
sub = os.path.join(params['output_path'], 'sub')
try:
    os.makedirs(sub, exist_ok=True)
    open(os.path.join(sub, 'file.txt'), 'w').write('overwritten')
except OSError as error:
    value = str(error)
", &folder);
        assert_untouched(&victim, &outcome);
    }
}

claim! {
    /// Opening a FIFO would hang the supervisor; a device would be worse.
    fn special_files_at_the_output_path_are_never_carried_out(cell) {
        for make in [
            "os.mkfifo(path)",
            "s = socket.socket(socket.AF_UNIX); s.bind(path)",
            "os.mkdir(path)",
            "os.mkfifo(path, 0o777); os.symlink('x', path + '.link')",
        ] {
            let output = cell.folder("work/out").join("r");
            let code = format!("
import os, socket
path = params['output_path']
try: os.unlink(path)
except FileNotFoundError: pass
try:
    {make}
except OSError as error:
    value = str(error)
");
            let outcome = run(cell, &code, &output);
            let there = fs::symlink_metadata(&output).is_ok_and(|m| !m.is_file());
            assert!(!there, "{make} was carried out\n{}", outcome.show());
            assert!(outcome.elapsed.as_secs() < 10, "{make} hung\n{}", outcome.show());
            assert_ne!(outcome.status(), "internal_error", "{make}\n{}", outcome.show());
        }
        let output = cell.path("work/out/proof");
        prove(cell, "import os; os.mkfifo(params['output_path'])", &output);
    }
}

claim! {
    fn hard_links_to_host_files_can_t_be_made(cell) {
        let input = cell.file("work/out/input.txt", "untouched");
        let output = cell.path("work/out/report.txt");
        let code = "
import os
os.link(args['input'], params['output_path'])
open(params['output_path'], 'w').write('overwritten')
";
        let plain = format!("params = {{'output_path': args['output']}}\n{code}");
        Probe::new(&plain).args(json!({"output": output, "input": input})).prove(cell);
        fs::remove_file(&output).expect("own file");
        let input = cell.file("work/out/input.txt", "untouched");
        let params = json!({
            "code": code, "mark": cell.mark(), "raw": true, "output_path": output, "input_path": input,
            "args": {"input": input},
        });
        let outcome = cell.call(cell.probe_with(POLICY)).params(&params).write(&output).read(&input).run();
        assert_eq!(fs::read_to_string(&input).expect("still there"), "untouched", "{}", outcome.show());
    }
}

claim! {
    /// A size without data: copying it out byte by byte would fill the host's disk.
    fn a_sparse_output_can_t_fill_the_disk(cell) {
        let output = cell.folder("work/out").join("report.bin");
        let outcome = run(cell, "open(params['output_path'], 'wb').truncate(1 << 40)", &output);
        assert!(outcome.elapsed.as_secs() < 30, "{}", outcome.show());
        let blocks = fs::metadata(&output).map(|m| m.blocks()).unwrap_or(0);
        assert!(blocks * 512 < 64 << 20, "{blocks} blocks\n{}", outcome.show());
        assert_ne!(outcome.status(), "internal_error", "{}", outcome.show());
    }
}

claim! {
    /// An input beside the output is read where it is, kept as it is, and nothing that was denied.
    fn an_input_in_the_output_s_folder_stays_as_it_is(cell) {
        let input = cell.file("work/both/notes.txt", "notes");
        let output = cell.path("work/both/report.txt");
        let code = "open(params['output_path'], 'w').write(open(params['input_path']).read() + '!')";
        let params = json!({
            "code": code, "mark": cell.mark(), "raw": true, "args": {},
            "output_path": output, "input_path": input,
        });
        let outcome = cell
            .call(cell.probe_with(POLICY))
            .params(&params)
            .read(&input)
            .write(&output)
            .run();
        outcome.assert_ok();
        assert_eq!(fs::read_to_string(&output).expect("written"), "notes!");
        assert_eq!(fs::read_to_string(&input).expect("kept"), "notes");
        assert!(outcome.denials().is_empty(), "{}", outcome.show());
    }
}

claim! {
    /// Writing a whole folder never empties a file in it that was granted for reading.
    fn a_folder_granted_for_both_keeps_its_files(cell) {
        let input = cell.file("work/both/notes.txt", "notes");
        let folder = cell.path("work/both");
        let code = "open(params['output_path'] + '/report.txt', 'w').write('report')";
        let params = json!({
            "code": code, "mark": cell.mark(), "raw": true, "args": {}, "output_path": folder,
        });
        let outcome = cell
            .call(cell.probe_with(POLICY))
            .params(&params)
            .read(&input)
            .write(&folder)
            .run();
        outcome.assert_ok();
        assert_eq!(fs::read_to_string(&input).expect("kept"), "notes");
        assert_eq!(fs::read_to_string(folder.join("report.txt")).expect("written"), "report");
    }
}

claim! {
    /// A folder where the host has a file is a denial with a whole envelope, not a crash.
    fn an_output_of_another_kind_than_the_host_s_is_left_in_the_cell(cell) {
        let taken = cell.file("work/out/name", "kept");
        let folder = cell.path("work/out");
        let code = "import os; os.makedirs(params['output_path'] + '/name/below'); open(params['output_path'] + '/fine', 'w').write('x')";
        let outcome = run(cell, code, &folder);
        outcome.assert_ok();
        outcome.assert_denial("filesystem", taken.to_str().expect("text"));
        assert_eq!(fs::read_to_string(&taken).expect("kept"), "kept");
        assert!(outcome.envelope()["audit"]["events"].as_u64() >= Some(2), "{}", outcome.show());
    }
}
