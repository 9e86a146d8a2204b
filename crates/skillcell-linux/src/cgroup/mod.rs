//! One cgroup per call, v2 or v1, where this caller may make one.
//!
//! Folders are named `skillcell-<supervisor pid>-<run>`, so that what a killed supervisor left
//! behind can be told from what is in use, and swept.

mod discover;

pub use discover::discover;

use crate::error::{During, LinuxError, Result, Step};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use skillcell_core::{CgroupController, CgroupFacts, CgroupVersion};
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
}

/// The cgroup of one call; removed when dropped by whom it belongs to.
#[derive(Debug)]
pub struct CellCgroup {
    folders: Vec<CgroupFolder>,
    borrowed: bool,
}

/// Its folder in one hierarchy.
#[derive(Debug, Clone)]
pub struct CgroupFolder {
    pub path: PathBuf,
    pub version: CgroupVersion,
    pub controllers: Vec<CgroupController>,
}

impl CellCgroup {
    /// Makes the folders and sets the limits. Whatever was made is removed if a later step fails.
    pub fn create(facts: &CgroupFacts, name: &str, limits: CgroupLimits) -> Result<CellCgroup> {
        let mut made = CellCgroup {
            folders: Vec::new(),
            borrowed: false,
        };
        let folder = format!("{PREFIX}{}-{name}", std::process::id());
        for parent in &facts.parents {
            sweep(&parent.path);
            let path = parent.path.join(&folder);
            fs::create_dir(&path).map_err(|e| at(&path, &e))?;
            made.folders.push(CgroupFolder {
                path,
                version: parent.version,
                controllers: parent.controllers.clone(),
            });
        }
        for folder in &made.folders {
            folder.set(limits)?;
        }
        Ok(made)
    }

    /// A look at another process's cgroup, which that one removes.
    pub fn borrow(folders: Vec<CgroupFolder>) -> CellCgroup {
        CellCgroup {
            folders,
            borrowed: true,
        }
    }

    pub fn folders(&self) -> &[CgroupFolder] {
        &self.folders
    }

    /// The v2 folder, to be born into.
    pub fn birthplace(&self) -> Result<Option<OwnedFd>> {
        let Some(folder) = self.of(CgroupVersion::V2).next() else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(&folder.path, flags, Mode::empty())
            .map(Some)
            .during_at(Step::Cgroup, &folder.path)
    }

    /// The v1 folders' doors, for the child to walk through by itself; in v2 it is born there.
    ///
    /// A thread that moves itself takes no global lock. Moving another process does, and waits for
    /// every CPU to pass a grace period: tens of milliseconds on a busy machine.
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>> {
        self.of(CgroupVersion::V1)
            .map(|folder| {
                let tasks = folder.path.join("tasks");
                open(&tasks, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                    .during_at(Step::Cgroup, &tasks)
            })
            .collect()
    }

    fn of(&self, version: CgroupVersion) -> impl Iterator<Item = &CgroupFolder> {
        self.folders.iter().filter(move |f| f.version == version)
    }

    /// Whether memory is counted for as long as the call lives, and forks that fail.
    pub fn counts(&self) -> (bool, bool) {
        let any = |controller, file: fn(CgroupVersion) -> &'static str| {
            self.folders
                .iter()
                .any(|f| f.has(controller) && f.path.join(file(f.version)).exists())
        };
        (
            any(CgroupController::Memory, peak_file),
            any(CgroupController::Pids, |_| "pids.max"),
        )
    }

    pub fn usage(&self) -> CgroupUsage {
        let mut usage = CgroupUsage::default();
        for folder in &self.folders {
            folder.count(&mut usage);
        }
        usage
    }

    /// Removes the folders; the kernel may need a moment after the last process has gone.
    fn remove(&mut self) {
        if self.borrowed {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(2);
        for folder in self.folders.drain(..) {
            while let Err(error) = fs::remove_dir(&folder.path) {
                if error.kind() == io::ErrorKind::NotFound || Instant::now() > deadline {
                    break; // a later call sweeps what is left
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

impl CgroupFolder {
    fn has(&self, controller: CgroupController) -> bool {
        self.controllers.contains(&controller)
    }

    fn set(&self, limits: CgroupLimits) -> Result<()> {
        let v2 = self.version == CgroupVersion::V2;
        let path = &self.path;
        if let (Some(bytes), true) = (limits.memory_bytes, self.has(CgroupController::Memory)) {
            let file = if v2 {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            write(path, file, &bytes.to_string())?;
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
        if let (Some(count), true) = (limits.processes, self.has(CgroupController::Pids)) {
            write(path, "pids.max", &count.to_string())?;
        }
        if let (Some(millis), true) = (limits.cpu_millis, self.has(CgroupController::Cpu)) {
            let quota = u64::from(millis) * 100;
            if v2 {
                write(path, "cpu.max", &format!("{quota} 100000"))?;
            } else {
                write(path, "cpu.cfs_period_us", "100000")?;
                write(path, "cpu.cfs_quota_us", &quota.to_string())?;
            }
        }
        Ok(())
    }

    fn count(&self, usage: &mut CgroupUsage) {
        let v2 = self.version == CgroupVersion::V2;
        if self.has(CgroupController::Memory) {
            let (peak, events) = if v2 {
                ("memory.peak", "memory.events")
            } else {
                ("memory.max_usage_in_bytes", "memory.oom_control")
            };
            usage.peak_memory = fs::read_to_string(self.path.join(peak))
                .ok()
                .and_then(|t| t.trim().parse().ok());
            usage.oom_kills = keyed(&self.path.join(events), "oom_kill");
        }
        if self.has(CgroupController::Pids) {
            usage.forks_denied = keyed(&self.path.join("pids.events"), "max");
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

fn peak_file(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V2 => "memory.peak",
        CgroupVersion::V1 => "memory.max_usage_in_bytes",
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
mod tests;
