//! Where host paths can't appear in a cell.
//!
//! A granted path stands inside at its own place. On top of the cell's own folders it would hide
//! what the cell is made of (an interpreter, `/proc`, the bundle), or hand the skill a part of the
//! host that no grant is meant for (devices, sockets under `/run`, all of `/`).

use std::path::{Component, Path};

/// Nothing in or under these.
const RESERVED: [&str; 12] = [
    "bin", "boot", "deps", "dev", "etc", "proc", "run", "sbin", "scratch", "skill", "sys", "usr",
];
/// Not these themselves: the cell has its own, and the host's are everybody's. What is in them is
/// fine.
const SHARED: [&str; 3] = ["home", "root", "tmp"];

/// Why a path can't be granted wherever it comes from, or `None` if it can.
pub(crate) fn collision(path: &Path) -> Option<String> {
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let Some(first) = parts.next() else {
        return Some("the whole file system can't be granted".to_owned());
    };
    if RESERVED.contains(&&*first) || first.starts_with("lib") {
        return Some(format!(
            "/{first} is the cell's own and can't be shared with it"
        ));
    }
    if SHARED.contains(&&*first) && parts.next().is_none() {
        return Some(format!(
            "/{first} as a whole can't be granted, only paths in it"
        ));
    }
    None
}

/// Absolute and without `..`: the paths that a plan compares are resolved already, and one that is
/// not would be compared with the wrong thing.
pub(crate) fn is_resolved(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|c| matches!(c, Component::RootDir | Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_cell_itself_collide_and_others_do_not() {
        for bad in [
            "/",
            "/proc",
            "/proc/1/environ",
            "/sys/x",
            "/dev/shm/x",
            "/skill/a",
            "/deps",
            "/scratch",
            "/usr/share/x",
            "/lib",
            "/lib64/x",
            "/libx32",
            "/bin",
            "/sbin",
            "/etc/passwd",
            "/run/x",
            "/boot",
            "/tmp",
            "/home",
            "/root",
            "/tmp/",
            "//",
            "//etc",
        ] {
            assert!(collision(Path::new(bad)).is_some(), "{bad}");
        }
        for good in [
            "/tmp/x",
            "/home/me",
            "/root/x",
            "/data",
            "/skills",
            "/srv/etc",
            "/users/bin",
        ] {
            assert_eq!(collision(Path::new(good)), None, "{good}");
        }
    }
}
