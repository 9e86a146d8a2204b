//! A call that is still going on, seen from the host.

use crate::{Child, Finished};
use std::fs;
use std::time::{Duration, Instant};

pub struct Running {
    pub supervisor: Child,
    pub(crate) mark: String,
}

impl Running {
    /// Host pids of the skill's processes, once there are at least `count`.
    pub fn skill_processes(&self, count: usize) -> Vec<u32> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let found = processes_named(&self.mark);
            if found.len() >= count {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "the skill did not start {count} processes, only {}",
                found.len()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Panics unless every process of the skill ends soon.
    pub fn assert_skill_ends(&self, within: Duration) {
        let deadline = Instant::now() + within;
        while !processes_named(&self.mark).is_empty() {
            assert!(
                Instant::now() < deadline,
                "processes of the skill are still alive"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn finish(self) -> Finished {
        self.supervisor.finish()
    }
}

/// Living processes with this name. The probe fixture names itself by the cell's mark, and children
/// inherit the name.
pub fn processes_named(name: &str) -> Vec<u32> {
    fs::read_dir("/proc")
        .expect("/proc is readable")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            field(&status, "Name") == Some(name)
                && !field(&status, "State").is_some_and(|s| s.starts_with(['Z', 'X']))
        })
        .collect()
}

/// A line of `/proc/PID/status`.
pub fn status_field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is alive");
    field(&status, name)
        .unwrap_or_else(|| panic!("/proc/{pid}/status has no {name}"))
        .to_owned()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}
