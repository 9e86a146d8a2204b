//! Where a call's cgroups can be made, controller by controller: in v2 where the delegated folder
//! really hands it down, else in v1, else nowhere.

use rustix::fs::{Access, AtFlags, CWD, accessat};
use skillcell_core::{CgroupController, CgroupFacts, CgroupParent, CgroupVersion, Missing};
use std::fs;
use std::path::{Path, PathBuf};

/// Looks only; makes nothing.
pub fn discover() -> CgroupFacts {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    discover_in(&own, &mounts)
}

/// The same, of these texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn discover_in(own: &str, mounts: &str) -> CgroupFacts {
    let mut facts = CgroupFacts::default();
    let mut parents: Vec<CgroupParent> = v2_parent(own, mounts).into_iter().collect();
    for controller in CgroupController::ALL {
        if parents.iter().any(|p| p.controllers.contains(&controller)) {
            continue;
        }
        let Some(path) = v1_folder(controller.as_str(), own, mounts) else {
            continue;
        };
        // Controllers that are mounted together share a folder, and it is made once.
        match parents.iter_mut().find(|p| p.path == path) {
            Some(shared) => shared.controllers.push(controller),
            None => parents.push(CgroupParent {
                path,
                version: CgroupVersion::V1,
                controllers: vec![controller],
            }),
        }
    }
    for parent in parents {
        facts.add(parent);
    }
    if facts.memory.is_none() || facts.pids.is_none() || facts.cpu.is_none() {
        facts.missing = Some(Missing {
            what: "no writable cgroup with the memory, pids and cpu controllers".into(),
            fix: "run it as `systemd-run --user --scope -p Delegate=yes skillcell …`".into(),
        });
    }
    facts
}

fn v2_parent(own: &str, mounts: &str) -> Option<CgroupParent> {
    let path = own.lines().find_map(|l| l.strip_prefix("0::"))?;
    let (mount, root) = find_mount(mounts, "cgroup2", None)?;
    let here = join(&mount, &root, path);
    // A folder with processes of its own can't have children with controllers, except the root;
    // a sibling of ours can be made where the parent is ours as well.
    let above = here
        .parent()
        .filter(|p| p.starts_with(&mount))
        .map(Path::to_owned);
    [Some(here), above].into_iter().flatten().find_map(|path| {
        // What a new folder in here will have; `cgroup.controllers` is what this one could give.
        let enabled = fs::read_to_string(path.join("cgroup.subtree_control")).ok()?;
        let controllers: Vec<CgroupController> = CgroupController::ALL
            .into_iter()
            .filter(|c| enabled.split_ascii_whitespace().any(|e| e == c.as_str()))
            .collect();
        let usable =
            !controllers.is_empty() && writable(&path) && writable(&path.join("cgroup.procs"));
        usable.then_some(CgroupParent {
            path,
            version: CgroupVersion::V2,
            controllers,
        })
    })
}

fn v1_folder(controller: &str, own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers
            .split(',')
            .any(|c| c == controller)
            .then(|| parts.next())?
    })?;
    let (mount, root) = find_mount(mounts, "cgroup", Some(controller))?;
    Some(join(&mount, &root, path)).filter(|folder| writable(folder))
}

/// The mount point and the root within the hierarchy, from mountinfo.
pub(super) fn find_mount(
    mounts: &str,
    kind: &str,
    controller: Option<&str>,
) -> Option<(PathBuf, String)> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        if right.next()? != kind {
            return None;
        }
        let options = right.nth(1)?;
        if controller.is_some_and(|c| !options.split(',').any(|o| o == c)) {
            return None;
        }
        let fields: Vec<&str> = left.split(' ').collect();
        Some((PathBuf::from(*fields.get(4)?), (*fields.get(3)?).to_owned()))
    })
}

pub(super) fn join(mount: &Path, root: &str, path: &str) -> PathBuf {
    let below = path
        .strip_prefix(root.trim_end_matches('/'))
        .unwrap_or(path);
    let below = below.trim_start_matches('/');
    if below.is_empty() {
        mount.to_owned()
    } else {
        mount.join(below)
    }
}

fn writable(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
