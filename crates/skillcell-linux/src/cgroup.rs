//! One cgroup per call, v2 or v1, where this caller may make one.
//!
//! Folders are named `skillcell-<supervisor pid>-<run>`, so that what a killed supervisor left
//! behind can be told from what is in use, and swept.

use crate::error::{During, LinuxError, Result, Step};
use rustix::fd::OwnedFd;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, open};
use skillcell_core::{CgroupFacts, CgroupVersion, Missing};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PREFIX: &str = "skillcell-";

/// What a call's cgroup holds. `None`: that limit is held by something else.
#[derive(Debug, Clone, Copy, Default)]
pub struct CgroupLimits {
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub cpu_millis: Option<u32>,
}

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct CgroupUsage {
    pub peak_memory: Option<u64>,
    pub oom_kills: u64,
    /// Forks that failed because of the limit.
    pub forks_denied: u64,
    pub counts_forks: bool,
}

/// The cgroup of one call; removed when dropped.
#[derive(Debug)]
pub struct CellCgroup {
    folders: Vec<(CgroupVersion, Controllers, PathBuf)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controllers {
    All,
    Memory,
    Pids,
    Cpu,
}

/// Where cgroups can be made. Looks only; makes nothing.
pub fn discover() -> CgroupFacts {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut facts = CgroupFacts::default();
    discover_v2(&own, &mounts, &mut facts);
    for controller in ["memory", "pids", "cpu"] {
        discover_v1(controller, &own, &mounts, &mut facts);
    }
    if facts.memory.is_none() || facts.pids.is_none() || facts.cpu.is_none() {
        facts.missing = Some(Missing {
            what: "no writable cgroup with the memory, pids and cpu controllers".into(),
            fix: "run it as `systemd-run --user --scope -p Delegate=yes skillcell …`".into(),
        });
    }
    facts
}

fn discover_v2(own: &str, mounts: &str, facts: &mut CgroupFacts) {
    let Some(path) = own.lines().find_map(|l| l.strip_prefix("0::")) else {
        return;
    };
    let Some((mount, root)) = find_mount(mounts, "cgroup2", None) else {
        return;
    };
    let here = join(&mount, &root, path);
    // A folder with processes of its own can't have children with controllers, except the root;
    // a sibling of ours can be made where the parent is ours as well.
    let candidates = [
        Some(here.clone()),
        here.parent()
            .filter(|p| p.starts_with(&mount))
            .map(Path::to_owned),
    ];
    for candidate in candidates.into_iter().flatten() {
        let enabled =
            fs::read_to_string(candidate.join("cgroup.subtree_control")).unwrap_or_default();
        let has = |name: &str| enabled.split_ascii_whitespace().any(|c| c == name);
        let usable = writable(&candidate) && writable(&candidate.join("cgroup.procs"));
        if usable && (has("memory") || has("pids") || has("cpu")) {
            let v2 = |name| has(name).then_some(CgroupVersion::V2);
            (facts.memory, facts.pids, facts.cpu) = (v2("memory"), v2("pids"), v2("cpu"));
            facts.parents.push(candidate);
            return;
        }
    }
}

fn discover_v1(controller: &str, own: &str, mounts: &str, facts: &mut CgroupFacts) {
    let slot = match controller {
        "memory" => &mut facts.memory,
        "pids" => &mut facts.pids,
        _ => &mut facts.cpu,
    };
    if slot.is_some() {
        return;
    }
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        controllers
            .split(',')
            .any(|c| c == controller)
            .then(|| parts.next())?
    });
    let (Some(path), Some((mount, root))) = (path, find_mount(mounts, "cgroup", Some(controller)))
    else {
        return;
    };
    let folder = join(&mount, &root, path);
    if writable(&folder) {
        *slot = Some(CgroupVersion::V1);
        facts.parents.push(folder);
    }
}

/// The mount point and the root within the hierarchy, from mountinfo.
fn find_mount(mounts: &str, kind: &str, controller: Option<&str>) -> Option<(PathBuf, String)> {
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

fn join(mount: &Path, root: &str, path: &str) -> PathBuf {
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

impl CellCgroup {
    /// Makes the folders and sets the limits. Whatever was made is removed if a later step fails.
    pub fn create(facts: &CgroupFacts, name: &str, limits: CgroupLimits) -> Result<CellCgroup> {
        let mut made = CellCgroup {
            folders: Vec::new(),
        };
        let folder = format!("{PREFIX}{}-{name}", std::process::id());
        for parent in &facts.parents {
            let v2 = parent.join("cgroup.controllers").exists();
            let (version, controllers) = if v2 {
                (CgroupVersion::V2, Controllers::All)
            } else if parent.join("memory.limit_in_bytes").exists() {
                (CgroupVersion::V1, Controllers::Memory)
            } else if parent.join("cpu.shares").exists() {
                (CgroupVersion::V1, Controllers::Cpu)
            } else {
                (CgroupVersion::V1, Controllers::Pids)
            };
            sweep(parent);
            let path = parent.join(&folder);
            fs::create_dir(&path).map_err(|e| at(&path, &e))?;
            made.folders.push((version, controllers, path));
        }
        made.set(limits)?;
        Ok(made)
    }

    fn set(&self, limits: CgroupLimits) -> Result<()> {
        for (version, controllers, path) in &self.folders {
            let has = |c: Controllers| *controllers == Controllers::All || *controllers == c;
            let v2 = *version == CgroupVersion::V2;
            if let (Some(bytes), true) = (limits.memory_bytes, has(Controllers::Memory)) {
                write(
                    path,
                    if v2 {
                        "memory.max"
                    } else {
                        "memory.limit_in_bytes"
                    },
                    &bytes.to_string(),
                )?;
                // Swap would let a call exceed its memory; absent where the kernel has no swap accounting.
                let (file, value) = if v2 {
                    ("memory.swap.max", "0".to_owned())
                } else {
                    ("memory.memsw.limit_in_bytes", bytes.to_string())
                };
                write_if_there(path, file, &value)?;
                if v2 {
                    write_if_there(path, "memory.oom.group", "1")?;
                }
            }
            if let (Some(count), true) = (limits.processes, has(Controllers::Pids)) {
                write(path, "pids.max", &count.to_string())?;
            }
            if let (Some(millis), true) = (limits.cpu_millis, has(Controllers::Cpu)) {
                let quota = u64::from(millis) * 100;
                if v2 {
                    write(path, "cpu.max", &format!("{quota} 100000"))?;
                } else {
                    write(path, "cpu.cfs_period_us", "100000")?;
                    write(path, "cpu.cfs_quota_us", &quota.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// The v2 folder, to be born into.
    pub fn birthplace(&self) -> Result<Option<OwnedFd>> {
        for (version, _, path) in &self.folders {
            if *version == CgroupVersion::V2 {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                return open(path, flags, Mode::empty())
                    .map(Some)
                    .during_at(Step::Cgroup, path);
            }
        }
        Ok(None)
    }

    /// The v1 folders' doors, for the child to walk through by itself; in v2 it is born there.
    ///
    /// A thread that moves itself takes no global lock. Moving another process does, and waits for
    /// every CPU to pass a grace period: tens of milliseconds on a busy machine.
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>> {
        let v1 = self
            .folders
            .iter()
            .filter(|(version, _, _)| *version == CgroupVersion::V1);
        v1.map(|(_, _, path)| {
            let tasks = path.join("tasks");
            open(&tasks, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                .during_at(Step::Cgroup, &tasks)
        })
        .collect()
    }

    pub fn usage(&self) -> CgroupUsage {
        let mut usage = CgroupUsage::default();
        for (version, controllers, path) in &self.folders {
            let v2 = *version == CgroupVersion::V2;
            if *controllers == Controllers::All || *controllers == Controllers::Memory {
                let peak = if v2 {
                    "memory.peak"
                } else {
                    "memory.max_usage_in_bytes"
                };
                usage.peak_memory = fs::read_to_string(path.join(peak))
                    .ok()
                    .and_then(|t| t.trim().parse().ok());
                let events = if v2 {
                    "memory.events"
                } else {
                    "memory.oom_control"
                };
                usage.oom_kills = keyed(&path.join(events), "oom_kill");
            }
            if *controllers == Controllers::All || *controllers == Controllers::Pids {
                usage.counts_forks = path.join("pids.max").exists();
                usage.forks_denied = keyed(&path.join("pids.events"), "max");
            }
        }
        usage
    }

    /// Removes the folders; the kernel may need a moment after the last process has gone.
    fn remove(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(2);
        for (_, _, path) in self.folders.drain(..) {
            while let Err(error) = fs::remove_dir(&path) {
                if error.kind() == io::ErrorKind::NotFound || Instant::now() > deadline {
                    break; // a later call sweeps what is left
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Moves the calling thread, which is the whole process, through the doors.
pub(crate) fn join_through(doors: &[OwnedFd]) -> Result<()> {
    for door in doors {
        rustix::io::write(door, b"0").during(Step::Cgroup)?;
    }
    Ok(())
}

impl Drop for CellCgroup {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes folders of supervisors that are gone. One that still holds processes can't be removed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|n| {
            n.strip_prefix(PREFIX)?
                .split('-')
                .next()?
                .parse::<u32>()
                .ok()
        }) else {
            continue;
        };
        if !Path::new("/proc").join(owner.to_string()).exists() {
            fs::remove_dir(entry.path()).unwrap_or(());
        }
    }
}

fn keyed(path: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .find_map(|l| {
            l.split_once(' ')
                .filter(|(k, _)| *k == key)?
                .1
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

fn write(folder: &Path, file: &str, value: &str) -> Result<()> {
    let path = folder.join(file);
    fs::write(&path, value).map_err(|e| at(&path, &e))
}

fn write_if_there(folder: &Path, file: &str, value: &str) -> Result<()> {
    if folder.join(file).exists() {
        write(folder, file, value)
    } else {
        Ok(())
    }
}

fn at(path: &Path, error: &io::Error) -> LinuxError {
    LinuxError {
        path: Some(path.to_owned()),
        ..LinuxError::io(Step::Cgroup, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
