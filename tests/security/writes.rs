//! Writing: nothing but scratch.

use serde_json::json;
use skillcell_tests::{Level, Probe, Stage, claim};

claim! {
    /// Tries to make a file in every folder that it can name.
    fn nothing_is_writable_but_scratch(cell) {
        let probe = Probe::new("
import os
written = []
def attempt(folder):
    path = os.path.join(folder, 'planted-by-a-skill')
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL))
    except OSError:
        return
    os.unlink(path)
    written.append(folder)
extra = [args['host'], os.getcwd(), os.path.dirname(os.path.abspath(args.get('file', '/'))),
         '/tmp', '/var/tmp', '/dev/shm', '/run', '/run/lock', '/root', '/proc', '/sys', '/sys/fs/cgroup']
for folder in extra:
    attempt(folder)
for top in ('/skill', '/deps', '/etc', '/usr', '/var', '/opt', '/dev', '/scratch') if args['deep'] else ():
    for folder, folders, names in os.walk(top):
        attempt(folder)
        if folder.count('/') > 5:
            folders.clear()
try:
    for name in os.listdir('/'):
        attempt('/' + name)
except OSError:
    pass
value = sorted(set(written))
");
        // Outside, only the caller's own folder is tried: the point is that it can be written.
        let plain = Probe::new("
import os
os.close(os.open(args['host'] + '/written', os.O_CREAT | os.O_WRONLY)); os.unlink(args['host'] + '/written')
");
        let host = cell.path("work");
        plain.args(json!({"host": host})).prove(cell);
        let written = cell.probe_value(&probe.args(json!({"host": host, "deep": cell.level == Level::Sandbox})));
        let scratch = match cell.level {
            Level::Sandbox => vec!["/scratch".into(), "/tmp".into(), "/dev/shm".into()],
            // A folder of its own under the caller's temporary folder, gone after the call.
            Level::Process => vec![cell.path("tmp"), cell.path("run")],
        };
        for folder in written.as_array().expect("a list") {
            let folder = std::path::Path::new(folder.as_str().expect("a path"));
            assert!(scratch.iter().any(|s| folder.starts_with(s)), "{} is writable", folder.display());
        }
    }
}

claim! {
    fn scratch_is_writable(cell) {
        let value = cell.probe_value(&Probe::new("
import os, tempfile
with tempfile.NamedTemporaryFile('w+') as file:
    file.write('kept'); file.seek(0); value = file.read()
"));
        assert_eq!(value, "kept");
    }
}

claim! {
    /// Skills do write beside their own code. Read-only is right, and they must be told.
    fn the_bundle_is_read_only_and_the_denial_is_reported(cell) {
        let bundle = cell.bundle("writer", &[
            ("manifest.yaml", "name: writer\nversion: 1.0.0\n"),
            ("skill.py", "
import os
class Writer:
    def execute(self, params):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cache.txt')
        try:
            open(path, 'w').write('x')
        except OSError as error:
            return {'written': False, 'why': str(error)}
        return {'written': True}
"),
        ]);
        let plain = Probe::new("
import sys; sys.path.insert(0, args['bundle']); sys.dont_write_bytecode = True
import skill
value = skill.Writer().execute({})
assert value['written'], value
");
        plain.args(json!({"bundle": bundle})).prove(cell);
        std::fs::remove_file(bundle.join("cache.txt")).expect("the counter-proof wrote it");
        let outcome = cell.call(&bundle).flags(["--params", "{}"]).run();
        assert_eq!(outcome.assert_ok()["written"], false, "{}", outcome.show());
        let denial = outcome.assert_denial("filesystem", "cache.txt");
        assert_eq!(denial["reason"], "path_not_writable");
        assert!(!bundle.join("cache.txt").exists());
    }
}

claim! {
    fn granted_files_can_t_be_changed(cell) {
        let file = cell.file("work/data/file.txt", "as it was");
        let folder = cell.path("work/data");
        for code in [
            "open(args['file'], 'a').write('x')",
            "import os; os.truncate(args['file'], 0)",
            "import os; os.unlink(args['copy'])",
            "import os; os.rename(args['copy'], args['file'])",
            "import os; os.mkdir(args['folder'] + '/new')",
            "import os; os.link(args['file'], args['folder'] + '/hard')",
            "import os; os.symlink('x', args['folder'] + '/soft')",
        ] {
            let copy = cell.file("work/data/copy.txt", "copy");
            let probe = Probe::new(code).args(json!({"file": file, "copy": copy, "folder": folder}));
            probe.prove(cell);
            reset(&folder);
            cell.file("work/data/copy.txt", "copy");
            cell.file("work/data/file.txt", "as it was");
            let outcome = cell.call(Stage::get().fixture("probe")).params(&probe.params(cell)).read(&folder).run();
            assert_eq!(outcome.assert_ok()["reached"], false, "{code}\n{}", outcome.show());
            assert_eq!(std::fs::read_to_string(&file).expect("still there"), "as it was", "{code}");
            assert_eq!(std::fs::read_dir(&folder).expect("still there").count(), 2, "{code}");
        }
    }
}

fn reset(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("own folder").flatten() {
        if entry.file_type().expect("own file").is_dir() {
            std::fs::remove_dir(entry.path()).expect("own folder");
        } else {
            std::fs::remove_file(entry.path()).expect("own file");
        }
    }
}

claim! {
    /// Landlock doesn't see these calls, so something else must stop them.
    fn modes_and_times_of_host_files_can_t_be_changed(cell) {
        let file = cell.file("work/data/file.txt", "");
        // Everybody may write it, so that only the cell is in the way.
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("own file");
        for code in [
            "import os; os.chmod(args['file'], 0o777)",
            "import os; os.chown(args['file'], os.getuid(), os.getgid())",
            "import os; os.utime(args['file'], (1, 1))",
            "import os; fd = os.open(args['file'], os.O_RDONLY); os.fchmod(fd, 0o777)",
            "import os; os.setxattr(args['file'], 'user.planted', b'x')",
        ] {
            let probe = Probe::new(code).args(json!({"file": file}));
            // Not every file system has attributes of users, and not every user may write them.
            if !code.contains("setxattr") || probe.run_plain(cell)["reached"] == true {
                let outcome = cell.assert_stops_with(&probe, |call| call.read(&file));
                match cell.level {
                    Level::Sandbox => outcome.assert_denial("filesystem", "file.txt"),
                    Level::Process => outcome.assert_denial("syscall", ""),
                };
            }
        }
    }
}

claim! {
    fn modes_and_times_of_files_in_scratch_are_the_skill_s_own(cell) {
        if cell.level == Level::Process {
            return; // not promised there: the call that changes them is denied everywhere
        }
        let seen = cell.probe_value(&Probe::new("
import os
path = '/scratch/own'
fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
os.fchmod(fd, 0o640)
os.utime(fd, (1, 1))
os.chmod(path, 0o751)
os.utime(path, (2, 2))
value = [oct(os.stat(path).st_mode & 0o777), os.stat(path).st_mtime]
"));
        assert_eq!(seen, json!(["0o751", 2.0]));
    }
}

claim! {
    fn kernel_settings_can_t_be_changed(cell) {
        let read = Probe::new("
import os
path = '/proc/sys/kernel/hostname'
fd = os.open(path, os.O_WRONLY)
os.write(fd, open(path, 'rb').read())
").plain(skillcell_tests::Plain::Root);
        cell.assert_stops(&read);
    }
}
