//! bubblewrap with what a cell has by namespaces: everything unshared, a read-only system, private
//! tmpfs, proc and dev, an empty environment. It has no seccomp list, Landlock, quotas or receipt.

use std::path::Path;

use super::peer::{Absent, Contender, Expect, HELLO_LINE, Peer, find_program, first_line};

pub(super) const NAME: &str = "bwrap";

pub(super) fn contender(python: &Path, script: &Path) -> Contender {
    let Some(program) = find_program("bwrap") else {
        return Err(Absent {
            name: NAME,
            reason: "bwrap is not installed".to_owned(),
        });
    };
    let mut args: Vec<String> = Vec::new();
    let mut flags = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));
    flags(&["--unshare-all", "--die-with-parent", "--new-session"]);
    flags(&["--cap-drop", "ALL", "--clearenv"]);
    flags(&["--ro-bind", "/usr", "/usr"]);
    for dir in ["bin", "sbin", "lib", "lib32", "lib64"] {
        let path = format!("/{dir}");
        match std::fs::read_link(&path) {
            Ok(target) => flags(&["--symlink", &target.display().to_string(), &path]),
            Err(_) => flags(&["--ro-bind-try", &path, &path]),
        }
    }
    if !python.starts_with("/usr") {
        let prefix = python.parent().and_then(Path::parent).unwrap_or(python);
        let prefix = prefix.display().to_string();
        flags(&["--ro-bind", &prefix, &prefix]);
    }
    flags(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    flags(&["--ro-bind", &script.display().to_string(), "/hello.py"]);
    flags(&["--", &python.display().to_string(), "/hello.py"]);
    Peer {
        name: NAME,
        about: format!("{}, all unshared", first_line(&program, &["--version"])),
        program,
        args,
        expect: Expect::Line(HELLO_LINE),
    }
    .probed()
}
