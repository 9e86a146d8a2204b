//! Reads about processes of a cell, from outside.

use std::io;

/// Which process a thread belongs to, and its parent.
pub fn family(tid: u32) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |name: &str| -> Option<u32> {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some((field("Tgid:")?, field("PPid:")?))
}

/// When a task began, in ticks since the machine did.
pub fn born(tid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    // The name in parentheses may hold anything; fields start after the last one.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Children of all threads of a process, by number; none where they can't be found out.
pub fn children(pid: u32) -> Vec<u32> {
    try_children(pid).unwrap_or_default()
}

fn try_children(pid: u32) -> io::Result<Vec<u32>> {
    // Kernels without CONFIG_PROC_CHILDREN have no such files. Finding nobody would mean that no
    // quota is held and nothing is killed, so there every process is asked for its parent.
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return children_by_parent(pid);
    }
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let list = match std::fs::read_to_string(task?.path().join("children")) {
            Err(error) if is_gone(&error) => continue,
            list => list?,
        };
        found.extend(
            list.split_ascii_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    Ok(found)
}

/// As `children`, from the parent that each process of the host names.
fn children_by_parent(parent: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if status_field(pid, "PPid:") == Some(parent.into()) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// A thread or process that has ended since it was listed.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Threads of all processes below a living one. What can't be counted is an error, not nobody: a
/// limit is held against this.
pub fn tasks_below(root: u32) -> io::Result<u64> {
    let mut tasks = 0;
    let mut waiting = try_children(root)?;
    while let Some(pid) = waiting.pop() {
        match threads_of(pid).and_then(|threads| Ok((threads, try_children(pid)?))) {
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
            Ok((threads, children)) => {
                tasks += threads;
                waiting.extend(children);
            }
        }
    }
    Ok(tasks)
}

fn threads_of(pid: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    field(&status, "Threads:").ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// All descendants, nearest first. Orphans of a cell hang below its init, so none is missed.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut all = children(root);
    let mut next = 0;
    while next < all.len() {
        let more = children(all[next]);
        all.extend(more);
        next += 1;
        if all.len() > 100_000 {
            break;
        }
    }
    all
}

/// Threads of a process.
pub fn threads(pid: u32) -> u64 {
    status_field(pid, "Threads:").unwrap_or(0)
}

/// Threads of all processes of a user.
pub fn tasks_of(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .flatten()
        .filter(|e| e.metadata().is_ok_and(|m| m.uid() == uid))
        .filter_map(|e| Some(threads(e.file_name().to_str()?.parse().ok()?)))
        .sum()
}

/// Anonymous and shared memory of a process, in bytes, without what is mapped from files.
pub fn resident(pid: u32) -> u64 {
    let kib =
        status_field(pid, "RssAnon:").unwrap_or(0) + status_field(pid, "RssShmem:").unwrap_or(0);
    kib * 1024
}

/// As `resident`, with pages that several processes share divided among them.
pub fn proportional(pid: u32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
        return resident(pid);
    };
    let field = |name: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(name))
            .and_then(|v| v.split_ascii_whitespace().next()?.parse::<u64>().ok())
    };
    match (field("Pss_Anon:"), field("Pss_Shmem:")) {
        (Some(anon), shmem) => (anon + shmem.unwrap_or(0)) * 1024,
        _ => field("Pss:").map_or_else(|| resident(pid), |kib| kib * 1024),
    }
}

/// User and system time of a process and its reaped children, in milliseconds.
pub fn cpu_millis(pid: u32) -> u64 {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return 0;
    };
    // The name in parentheses may hold anything; fields start after the last one.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return 0;
    };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ticks: u64 = (11..15)
        .filter_map(|i| fields.get(i)?.parse::<u64>().ok())
        .sum();
    ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)
}

fn status_field(pid: u32, name: &str) -> Option<u64> {
    field(
        &std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?,
        name,
    )
}

fn field(status: &str, name: &str) -> Option<u64> {
    status
        .lines()
        .find_map(|l| l.strip_prefix(name))?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_with_and_without_the_kernel_s_own_list() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap_or_else(|e| panic!("{e}"));
        let (me, pid) = (std::process::id(), child.id());
        let found = [children(me), children_by_parent(me).unwrap_or_default()];
        let tasks = tasks_below(me).unwrap_or_else(|e| panic!("{e}"));
        child.kill().unwrap_or_else(|e| panic!("{e}"));
        child.wait().unwrap_or_else(|e| panic!("{e}"));
        assert!(found.iter().all(|f| f.contains(&pid)), "{found:?}");
        assert!(tasks >= 1, "{tasks}");
    }

    #[test]
    fn what_can_t_be_counted_is_an_error_and_not_nobody() {
        const NO_PROCESS: u32 = u32::MAX;
        assert!(tasks_below(NO_PROCESS).is_err());
    }
}
