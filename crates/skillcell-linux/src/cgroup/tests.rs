//! Against plain folders that look like the kernel's: a limit that is written appears as a file.

use super::discover::{discover_in, find_mount, join};
use super::*;
use skillcell_core::CgroupController::{Cpu, Memory, Pids};
use tempfile::TempDir;

const LIMITS: CgroupLimits = CgroupLimits {
    memory_bytes: Some(1 << 20),
    processes: Some(8),
    cpu_millis: Some(500),
};

/// A v2 mount that hands down `enabled`, and v1 mounts, each with its controllers.
struct Host {
    root: TempDir,
    own: String,
    mounts: String,
}

impl Host {
    fn new(enabled: &str, v1: &[&str]) -> Host {
        let root = TempDir::new().unwrap();
        let v2 = root.path().join("unified");
        fs::create_dir(&v2).unwrap();
        fs::write(v2.join("cgroup.controllers"), "memory pids cpu io\n").unwrap();
        fs::write(v2.join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(v2.join("cgroup.procs"), "").unwrap();
        let mut mounts = format!("1 0 0:1 / {} rw - cgroup2 cgroup2 rw\n", v2.display());
        let mut own = "0::/\n".to_owned();
        for (index, controllers) in v1.iter().enumerate() {
            let path = root.path().join(controllers);
            fs::create_dir(&path).unwrap();
            mounts += &format!(
                "2 0 0:2 / {} rw - cgroup cgroup rw,{controllers}\n",
                path.display()
            );
            own += &format!("{}:{controllers}:/\n", index + 1);
        }
        Host { root, own, mounts }
    }

    fn facts(&self) -> CgroupFacts {
        discover_in(&self.own, &self.mounts)
    }

    /// The limits that a cell made here was given, as `mount/file`.
    fn limits_of_a_cell(&self) -> Vec<String> {
        let cell = CellCgroup::create(&self.facts(), "test", LIMITS).unwrap();
        let mut files = Vec::new();
        for folder in &cell.folders {
            let mount = folder.path.parent().unwrap();
            let mount = mount.strip_prefix(self.root.path()).unwrap();
            for entry in fs::read_dir(&folder.path).unwrap() {
                let file = mount.join(entry.unwrap().file_name());
                files.push(file.display().to_string());
            }
            // What the kernel would have removed with the folder.
            fs::remove_dir_all(&folder.path).unwrap();
        }
        files.sort();
        files
    }
}

#[test]
fn a_v2_folder_is_given_only_the_limits_of_controllers_that_it_has() {
    let host = Host::new("pids\n", &["memory", "cpu,cpuacct"]);
    let facts = host.facts();
    assert_eq!(facts.pids, Some(CgroupVersion::V2));
    assert_eq!(facts.memory, Some(CgroupVersion::V1));
    assert_eq!(facts.cpu, Some(CgroupVersion::V1));
    assert_eq!(facts.missing, None);
    assert_eq!(
        host.limits_of_a_cell(),
        [
            "cpu,cpuacct/cpu.cfs_period_us",
            "cpu,cpuacct/cpu.cfs_quota_us",
            "memory/memory.limit_in_bytes",
            "unified/pids.max",
        ]
    );
}

#[test]
fn a_controller_that_v2_could_give_but_does_not_hand_down_is_not_counted_on() {
    let facts = Host::new("", &[]).facts();
    assert_eq!((facts.memory, facts.pids, facts.cpu), (None, None, None));
    assert!(facts.parents.is_empty());
    assert!(facts.missing.is_some());
}

#[test]
fn a_controller_that_neither_version_has_is_said_to_be_missing() {
    let host = Host::new("cpu io\n", &["pids"]);
    let facts = host.facts();
    assert_eq!(facts.memory, None);
    assert!(facts.missing.is_some());
    assert_eq!(
        host.limits_of_a_cell(),
        ["pids/pids.max", "unified/cpu.max"]
    );
}

#[test]
fn v2_wins_where_it_has_everything() {
    let host = Host::new("cpu io memory pids\n", &["memory", "pids", "cpu"]);
    let facts = host.facts();
    assert_eq!(facts.parents.len(), 1);
    assert_eq!(facts.parents[0].controllers, [Memory, Pids, Cpu]);
    assert_eq!(
        host.limits_of_a_cell(),
        ["unified/cpu.max", "unified/memory.max", "unified/pids.max"]
    );
}

#[test]
fn controllers_that_are_mounted_together_share_one_folder() {
    let host = Host::new("", &["cpu,memory", "pids"]);
    let facts = host.facts();
    assert_eq!(facts.parents.len(), 2);
    assert_eq!(facts.parents[0].controllers, [Memory, Cpu]);
    assert_eq!(
        host.limits_of_a_cell(),
        [
            "cpu,memory/cpu.cfs_period_us",
            "cpu,memory/cpu.cfs_quota_us",
            "cpu,memory/memory.limit_in_bytes",
            "pids/pids.max",
        ]
    );
}

#[test]
fn a_cell_joins_every_folder_that_it_is_limited_by() {
    let host = Host::new("pids\n", &["memory", "cpu"]);
    let cell = CellCgroup::create(&host.facts(), "test", LIMITS).unwrap();
    for folder in cell.of(CgroupVersion::V1) {
        fs::write(folder.path.join("tasks"), "").unwrap();
    }
    assert!(cell.birthplace().unwrap().is_some());
    assert_eq!(cell.doors().unwrap().len(), 2);
    for folder in &cell.folders {
        fs::remove_dir_all(&folder.path).unwrap();
    }
}

#[test]
fn mountinfo_gives_mount_point_and_root() {
    let mounts = "30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                  31 24 0:27 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    assert_eq!(
        find_mount(mounts, "cgroup", Some("memory")),
        Some((PathBuf::from("/sys/fs/cgroup/memory"), "/".into()))
    );
    assert_eq!(find_mount(mounts, "cgroup", Some("pids")), None);
    assert_eq!(
        find_mount(mounts, "cgroup2", None),
        Some((PathBuf::from("/sys/fs/cgroup"), "/docker/abc".into()))
    );
}

#[test]
fn a_path_below_the_mounts_root_is_found_under_the_mount_point() {
    assert_eq!(join(Path::new("/c"), "/", "/a/b"), PathBuf::from("/c/a/b"));
    assert_eq!(
        join(Path::new("/c"), "/docker/abc", "/docker/abc"),
        PathBuf::from("/c")
    );
    assert_eq!(
        join(Path::new("/c"), "/docker/abc", "/docker/abc/x"),
        PathBuf::from("/c/x")
    );
}
