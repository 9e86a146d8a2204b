//! Reading: nothing of the host but what was granted.

use serde_json::json;
use skillcell_tests::{Plain, Probe, claim, sandbox_claim};
use std::os::unix::fs::symlink;

const READ: &str = "value = open(args['path']).read()";
const LIST: &str = "import os; value = os.listdir(args['path'])";

claim! {
    fn host_files_are_unreadable(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        cell.assert_stops(&Probe::new(READ).args(json!({"path": secret})));
    }
}

claim! {
    fn home_is_unreadable(cell) {
        let key = cell.file("home/.ssh/id_ed25519", "secret");
        cell.assert_stops(&Probe::new(READ).args(json!({"path": key})));
        cell.assert_stops(&Probe::new(LIST).args(json!({"path": cell.path("home")})));
    }
}

claim! {
    fn host_folders_cant_be_listed(cell) {
        cell.file("work/private/name", "");
        cell.assert_stops(&Probe::new(LIST).args(json!({"path": cell.path("work/private")})));
    }
}

sandbox_claim! {
    because crate::not_promised::SYSTEM_FILES;
    /// Accounts of the machine are not the skill's business; the cell's `/etc` is made up.
    fn accounts_of_the_host_are_unreadable(cell) {
        let probe = Probe::new("
text = open('/etc/passwd').read()
if not any(line.startswith(args['user'] + ':') for line in text.splitlines()):
    raise LookupError(args['user'])
value = text
");
        // Found on every system, and no account that a cell needs.
        cell.assert_stops(&probe.args(json!({"user": "daemon"})));
    }
}

claim! {
    /// `/etc/shadow` is for root alone, whom a cell must not give its rights.
    fn secrets_of_root_are_unreadable(cell) {
        cell.assert_stops(&Probe::new(READ).args(json!({"path": "/etc/shadow"})).plain(Plain::Root));
    }
}

claim! {
    fn details_of_the_machine_in_proc_are_unreadable(cell) {
        for name in ["cmdline", "partitions", "diskstats", "interrupts", "key-users", "cgroups", "net/unix"] {
            let probe = Probe::new("value = open('/proc/' + args['name']).read(); assert value and args['word'] in value");
            // A word that only the host's own would have.
            let word = if name == "net/unix" { "@" } else { "" };
            let _listener = (name == "net/unix").then(|| abstract_listener(cell.mark()));
            cell.assert_stops(&probe.args(json!({"name": name, "word": word})));
        }
    }
}

fn abstract_listener(name: &str) -> std::os::unix::net::UnixListener {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).expect("a short name");
    std::os::unix::net::UnixListener::bind_addr(&address).expect("a new name")
}

claim! {
    fn a_granted_file_is_readable_and_its_neighbour_is_not(cell) {
        let granted = cell.file("work/data/granted.txt", "yours");
        let neighbour = cell.file("work/data/neighbour.txt", "secret");
        let value = cell.probe_value_with(&Probe::new(READ).args(json!({"path": granted})), |call| call.read(&granted));
        assert_eq!(value, "yours");
        cell.assert_stops_with(&Probe::new(READ).args(json!({"path": neighbour})), |call| call.read(&granted));
    }
}

claim! {
    fn a_granted_folder_does_not_open_its_parent(cell) {
        let folder = cell.folder("work/data");
        let secret = cell.file("work/secret.txt", "secret");
        for path in [secret, folder.join("../secret.txt")] {
            cell.assert_stops_with(&Probe::new(READ).args(json!({"path": path})), |call| call.read(&folder));
        }
    }
}

claim! {
    fn symlinks_in_a_granted_folder_lead_nowhere_else(cell) {
        let folder = cell.folder("work/data");
        let secret = cell.file("work/secret.txt", "secret");
        symlink(&secret, folder.join("absolute")).expect("own folder");
        symlink("../secret.txt", folder.join("relative")).expect("own folder");
        let magic = format!("/proc/self/root{}", secret.display());
        symlink(magic, folder.join("magic")).expect("own folder");
        for name in ["absolute", "relative", "magic"] {
            let probe = Probe::new(READ).args(json!({"path": folder.join(name)}));
            cell.assert_stops_with(&probe, |call| call.read(&folder));
        }
    }
}

claim! {
    /// Grants follow the file that was checked, not a name that can be turned into another.
    fn a_granted_symlink_shows_only_its_target(cell) {
        let target = cell.file("work/target/file.txt", "yours");
        cell.file("work/target/other.txt", "secret");
        let link = cell.path("work/link.txt");
        symlink(&target, &link).expect("own folder");
        let other = Probe::new(READ).args(json!({"path": cell.path("work/target/other.txt")}));
        cell.assert_stops_with(&other, |call| call.read(&link));
    }
}

claim! {
    /// A handle made by number would walk around every path check.
    fn file_handles_can_t_be_opened_by_number(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        let probe = Probe::new("
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer(136)
ctypes.memmove(handle, (128).to_bytes(4, 'little'), 4)
mount = ctypes.c_int()
if libc.name_to_handle_at(-100, args['path'].encode(), handle, ctypes.byref(mount), 0) != 0:
    raise OSError(ctypes.get_errno(), 'name_to_handle_at')
value = True
").args(json!({"path": secret}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::METADATA;
    fn host_files_can_t_even_be_named(cell) {
        let secret = cell.file("work/secret.txt", "secret");
        let probe = Probe::new("import os; value = os.stat(args['path']).st_size").args(json!({"path": secret}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::OWN_ROOT;
    fn devices_of_the_host_are_absent(cell) {
        let probe = Probe::new("
import os, stat
found = []
for folder, folders, names in os.walk('/dev'):
    for name in names:
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and name not in args['harmless']):
            found.append(path)
if not found:
    raise LookupError('only harmless devices')
value = found
").args(json!({"harmless": ["null", "zero", "full", "random", "urandom", "tty"]}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::OWN_ROOT;
    fn mounts_of_the_host_are_invisible(cell) {
        let probe = Probe::new("
text = open('/proc/self/mountinfo').read()
if args['place'] not in text and '/sys/fs/cgroup' not in text and ' - sysfs ' not in text:
    raise LookupError('no mount of the host')
value = text
").args(json!({"place": cell.path("work")}));
        cell.assert_stops(&probe);
    }
}

sandbox_claim! {
    because crate::not_promised::OWN_ROOT;
    fn folders_with_sockets_and_state_of_the_host_are_absent(cell) {
        let probe = Probe::new("
import os
found = [p for p in ('/run', '/home', '/sys', '/root', '/var/run', '/boot', '/media', '/mnt', '/srv')
         if os.path.isdir(p) and os.path.realpath(p) == p and (os.access(p, os.R_OK) and os.listdir(p))]
if not found:
    raise LookupError('none')
value = found
");
        cell.assert_stops(&probe);
    }
}
