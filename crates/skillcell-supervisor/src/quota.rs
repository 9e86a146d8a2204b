//! Limits that the supervisor holds because no cgroup or mount does, and what the kernel counted
//! of those that it holds.

use skillcell_backend::Running;
use skillcell_core::Reason;
use skillcell_linux::cgroup::CgroupUsage;
use skillcell_linux::procfs;
use skillcell_plan::Limits;
use std::time::{Duration, Instant};

/// How often memory and tasks are added up where no cgroup does it.
const MEMORY_TICK: Duration = Duration::from_millis(5);
/// How often a scratch folder on the host's disk is added up.
const FOLDER_TICK: Duration = Duration::from_millis(50);

pub(crate) struct Quota {
    memory_limit: u64,
    task_limit: u64,
    scratch_bytes: u64,
    scratch_inodes: u64,
    watch_memory: bool,
    watch_folder: bool,
    next: Option<Instant>,
    next_folder: Instant,
    peak_memory: u64,
    tasks: u64,
    peak_tasks: u64,
    scratch_full: bool,
    pub(crate) cpu_millis: u64,
}

impl Quota {
    pub(crate) fn new(running: &Running, limits: &Limits) -> Self {
        let (counts_memory, _) = running.cgroup_counts();
        let watch_folder = running.host_scratch.is_some();
        let now = Instant::now();
        Quota {
            memory_limit: limits.memory.bytes(),
            task_limit: limits.processes.into(),
            scratch_bytes: limits.scratch.bytes(),
            scratch_inodes: limits.scratch_inodes,
            watch_memory: !counts_memory,
            watch_folder,
            next: (!counts_memory || watch_folder).then_some(now),
            next_folder: now,
            peak_memory: 0,
            tasks: 0,
            peak_tasks: 0,
            scratch_full: false,
            cpu_millis: 0,
        }
    }

    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.next
    }

    /// Looks, where it is time to; a limit that is exceeded ends the call.
    pub(crate) fn tick(&mut self, running: &Running, now: Instant) -> Option<Reason> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        self.next = Some(
            now + if self.watch_memory {
                MEMORY_TICK
            } else {
                FOLDER_TICK
            },
        );
        if self.watch_memory {
            if self.memory_exceeded(running) {
                return Some(Reason::MemoryExceeded);
            }
            // More than RLIMIT_NPROC lets through where the id is shared with other processes.
            if self.tasks > self.task_limit {
                return Some(Reason::ProcessesExceeded);
            }
        }
        if self.watch_folder && now >= self.next_folder {
            self.next_folder = now + FOLDER_TICK;
            if self.folder_exceeded(running) {
                return Some(Reason::ScratchExceeded);
            }
        }
        None
    }

    /// The sum over every process of the call: four with a quarter each more are too many.
    fn memory_exceeded(&mut self, running: &Running) -> bool {
        let pids = procfs::descendants(running.cell.pid);
        self.tasks = pids.iter().map(|p| procfs::threads(*p)).sum();
        self.peak_tasks = self.peak_tasks.max(self.tasks);
        let sum: u64 = pids.iter().map(|p| procfs::resident(*p)).sum();
        let scratch = scratch_used(running).unwrap_or(0);
        if sum + scratch <= self.memory_limit {
            self.peak_memory = self.peak_memory.max(sum + scratch);
            return false;
        }
        // Shared pages were counted once per process: look again with them divided.
        let fair: u64 = pids.iter().map(|p| procfs::proportional(*p)).sum::<u64>() + scratch;
        self.peak_memory = self.peak_memory.max(fair);
        fair > self.memory_limit
    }

    fn folder_exceeded(&mut self, running: &Running) -> bool {
        let Some(folder) = &running.host_scratch else {
            return false;
        };
        let (bytes, inodes) = folder_usage(folder.path(), self.scratch_inodes);
        self.scratch_full |=
            bytes * 50 >= self.scratch_bytes * 49 || inodes + 8 > self.scratch_inodes;
        bytes > self.scratch_bytes || inodes > self.scratch_inodes
    }

    /// Before the cell is taken down: what can only be asked of the living.
    pub(crate) fn last_look(&mut self, running: &Running) {
        let pids = procfs::descendants(running.cell.pid);
        self.cpu_millis = pids.iter().map(|p| procfs::cpu_millis(*p)).sum::<u64>()
            + procfs::cpu_millis(running.cell.pid);
        self.peak_tasks = self
            .peak_tasks
            .max(pids.iter().map(|p| procfs::threads(*p)).sum());
        self.folder_exceeded(running);
        if let Some(top) = &running.cell.scratch
            && let Ok(stat) = rustix::fs::fstatvfs(top)
        {
            // A few pages and names short of full: the write that failed may have been larger.
            self.scratch_full |= stat.f_bavail * 50 < stat.f_blocks || stat.f_favail < 8;
        }
    }

    /// As `last_look`, without what only explains a failure.
    pub(crate) fn quick_look(&mut self, running: &Running) {
        let pids = procfs::descendants(running.cell.pid);
        self.cpu_millis = pids.iter().map(|p| procfs::cpu_millis(*p)).sum();
        if let Some(top) = &running.cell.scratch
            && let Ok(stat) = rustix::fs::fstatvfs(top)
        {
            self.scratch_full |= stat.f_bavail * 50 < stat.f_blocks || stat.f_favail < 8;
        }
    }

    /// A limit that the kernel held without ending the call; it explains a failure.
    pub(crate) fn met(&self, usage: &CgroupUsage, forks_denied: u64) -> Option<Reason> {
        if usage.oom_kills > 0 {
            Some(Reason::MemoryExceeded)
        } else if usage.forks_denied + forks_denied > 0 || self.peak_tasks >= self.task_limit {
            Some(Reason::ProcessesExceeded)
        } else if self.scratch_full {
            Some(Reason::ScratchExceeded)
        } else {
            None
        }
    }

    pub(crate) fn peak_memory(&self, usage: &CgroupUsage) -> u64 {
        usage.peak_memory.unwrap_or(self.peak_memory)
    }
}

fn scratch_used(running: &Running) -> Option<u64> {
    let stat = rustix::fs::fstatvfs(running.cell.scratch.as_ref()?).ok()?;
    Some((stat.f_blocks - stat.f_bfree) * stat.f_frsize)
}

/// Bytes and entries below a folder, without following links; stops counting far above the limit.
fn folder_usage(top: &std::path::Path, max_entries: u64) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut entries) = (0, 0);
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            let Ok(meta) = entry.metadata() else { continue };
            bytes += meta.blocks() * 512;
            if meta.is_dir() {
                folders.push(entry.path());
            }
        }
        if entries > max_entries + 1 {
            break;
        }
    }
    (bytes, entries)
}
