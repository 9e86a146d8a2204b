//! What a call must not leave behind.

use crate::{Cell, child, processes_named};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A killed process may need a moment to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The host as it was before a call.
pub struct Before {
    mounts: Vec<String>,
}

impl Before {
    pub fn look() -> Before {
        Before { mounts: mounts() }
    }

    /// Panics when the call left a process, mount, cgroup or temporary file.
    pub fn assert_nothing_left(&self, cell: &Cell, run_id: Option<&str>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.left(cell, run_id);
            if left.is_empty() {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the call left behind:\n  {}",
                left.join("\n  ")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn left(&self, cell: &Cell, run_id: Option<&str>) -> Vec<String> {
        let mut left = Vec::new();
        for pid in processes_named(cell.mark()) {
            left.push(format!("a process of the skill: {}", describe(pid)));
        }
        for pid in orphans(cell) {
            left.push(format!("a process without a parent: {}", describe(pid)));
        }
        for mount in mounts() {
            if !self.mounts.contains(&mount) {
                left.push(format!("a mount: {mount}"));
            }
        }
        for folder in run_id.map(cgroups_named).unwrap_or_default() {
            left.push(format!("a cgroup: {}", folder.display()));
        }
        for folder in cell.temporary_folders() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                left.push(format!("a temporary file: {}", entry.path().display()));
            }
        }
        left
    }
}

/// Mounts of the host that could be the product's.
fn mounts() -> Vec<String> {
    fs::read_to_string("/proc/self/mountinfo")
        .expect("mountinfo is readable")
        .lines()
        .filter(|line| line.contains("skillcell"))
        .map(str::to_owned)
        .collect()
}

/// Living processes that fell to the suite when their parent died, and that the suite didn't start.
/// Those that bear the mark of another cell are for its own check to find.
fn orphans(cell: &Cell) -> Vec<u32> {
    let (known, me) = (child::known(), std::process::id());
    let of_another = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with(&Cell::mark_prefix()) && name.trim() != cell.mark()
    };
    fs::read_dir("/proc")
        .expect("/proc is readable")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| !known.contains(pid) && parent_if_alive(*pid) == Some(me) && !of_another(pid))
        .collect()
}

fn parent_if_alive(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        None
    } else {
        fields.next()?.parse().ok()
    }
}

fn describe(pid: u32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    format!(
        "{pid} {} {}",
        read("comm").trim(),
        read("cmdline").replace('\0', " ")
    )
}

/// Every cgroup, of both versions, with `name` in its own name.
pub fn cgroups_named(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(Path::new("/sys/fs/cgroup"), name, &mut found);
    found
}

fn search(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            if entry.file_name().to_string_lossy().contains(name) {
                found.push(entry.path());
            }
            search(&entry.path(), name, found);
        }
    }
}
