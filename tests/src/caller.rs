//! Who calls `skillcell`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// The account that the setup script makes for the second run of every security test.
pub const ORDINARY_USER: &str = "skillcell-test";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs the suite: root, when root runs it.
    Caller,
    /// An ordinary user: `skillcell-test` when root runs the suite, else the caller.
    Ordinary,
}

pub fn suite_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl User {
    /// Another account than that of the suite itself.
    pub fn is_switched(self) -> bool {
        self == User::Ordinary && suite_is_root()
    }

    /// `program` as this user. Switching is done by an exec, so the child's pid is the program's.
    pub fn command(self, program: impl AsRef<OsStr>) -> Command {
        if !self.is_switched() {
            return Command::new(program);
        }
        let (uid, gid) = ordinary_ids();
        let mut command = Command::new("setpriv");
        command.args([
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--clear-groups".into(),
            "--".into(),
        ]);
        command.arg(program);
        command
    }

    /// Gives a file or folder that the suite made to this user.
    pub fn own(self, path: &Path) {
        if self.is_switched() {
            let (uid, gid) = ordinary_ids();
            std::os::unix::fs::lchown(path, Some(uid), Some(gid))
                .unwrap_or_else(|e| panic!("chown {}: {e}", path.display()));
        }
    }

    /// The numeric id that `skillcell` runs with.
    pub fn uid(self) -> u32 {
        if self.is_switched() {
            ordinary_ids().0
        } else {
            rustix::process::geteuid().as_raw()
        }
    }
}

fn ordinary_ids() -> (u32, u32) {
    let passwd = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd is readable");
    passwd
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(ORDINARY_USER)).then_some(())?;
            Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
        })
        .unwrap_or_else(|| {
            panic!(
                "there is no user `{ORDINARY_USER}`: as root, the suite runs everything a second time as \
                 an ordinary user. Run scripts/test, or: \
                 useradd --create-home --shell /usr/sbin/nologin {ORDINARY_USER}"
            )
        })
}
