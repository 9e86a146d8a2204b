//! The report for people.

use super::tools::Tool;
use super::{Report, Row};
use crate::table::{heading, table};
use skillcell_core::{CgroupVersion, HostFacts};

pub(super) fn of(report: &Report) -> String {
    let mut out = heading("Host") + &table(["", ""], &facts(&report.host));
    let tools: Vec<[String; 3]> = report.tools.iter().map(tool_row).collect();
    out += &format!("\n{}{}", heading("Programs"), table(["", "", ""], &tools));
    for level in &report.levels {
        let state = if level.available {
            "available"
        } else {
            "not fully available"
        };
        let rows: Vec<[String; 2]> = level.controls.iter().map(control_row).collect();
        out += &format!(
            "\n{}{}",
            heading(&format!("Level {}: {state}", level.isolation)),
            table(["control", "mechanism"], &rows)
        );
    }
    if report.problems.is_empty() {
        out += "\nEverything that Skillcell can enforce is available here.\n";
        return out;
    }
    out += &format!("\n{}", heading("What is missing, and how to get it"));
    for problem in &report.problems {
        out += &format!("  - {}\n    fix: {}\n", problem.what, problem.fix);
    }
    if report.ready {
        out += "\nThe sandbox level is fully available in spite of these.\n";
    }
    out
}

fn facts(host: &HostFacts) -> Vec<[String; 2]> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let namespaces = match &host.namespaces {
        Ok(()) => "can be made (tried)".to_owned(),
        Err(missing) => format!("can't be made: {}", missing.what),
    };
    let landlock = match host.landlock_abi {
        0 => "missing or switched off".to_owned(),
        abi => format!("ABI {abi}"),
    };
    let caller = match (host.root, host.privileged) {
        (true, true) => "root",
        (true, false) => "root without the capabilities to change ids",
        (false, true) => "an ordinary user with the capabilities to change ids",
        (false, false) => "an ordinary user",
    };
    [
        ("kernel", host.kernel.clone()),
        ("caller", caller.to_owned()),
        (
            "container",
            host.container.clone().unwrap_or_else(|| "no".to_owned()),
        ),
        ("namespaces", namespaces),
        ("user namespace limits", user_namespaces()),
        ("Landlock", landlock),
        ("seccomp", yes(host.seccomp)),
        ("seccomp notifications", yes(host.seccomp_notify)),
        ("cgroups", cgroups(host)),
        ("cgroup folders", folders(host)),
        ("CPUs", host.cpus.to_string()),
    ]
    .map(|(name, value)| [name.to_owned(), value])
    .into()
}

/// The switches that distributions use against user namespaces.
fn user_namespaces() -> String {
    let switches = [
        ("user.max_user_namespaces", "user/max_user_namespaces"),
        (
            "kernel.unprivileged_userns_clone",
            "kernel/unprivileged_userns_clone",
        ),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "kernel/apparmor_restrict_unprivileged_userns",
        ),
    ];
    let known: Vec<String> = switches
        .iter()
        .filter_map(|(name, file)| {
            let value = std::fs::read_to_string(format!("/proc/sys/{file}")).ok()?;
            Some(format!("{name}={}", value.trim()))
        })
        .collect();
    if known.is_empty() {
        "none known".to_owned()
    } else {
        known.join(", ")
    }
}

fn cgroups(host: &HostFacts) -> String {
    let facts = &host.cgroup;
    let of = |name: &str, version: Option<CgroupVersion>| {
        format!("{name}: {}", version.map_or("none", CgroupVersion::as_str))
    };
    [
        of("memory", facts.memory),
        of("pids", facts.pids),
        of("cpu", facts.cpu),
    ]
    .join(", ")
}

fn folders(host: &HostFacts) -> String {
    let parents = &host.cgroup.parents;
    if parents.is_empty() {
        return "none that cells can be made in".to_owned();
    }
    let parents: Vec<String> = parents
        .iter()
        .map(|p| p.path.display().to_string())
        .collect();
    parents.join(", ")
}

fn tool_row(tool: &Tool) -> [String; 3] {
    let path = match (&tool.path, &tool.version) {
        (Some(path), Some(version)) => format!("{} ({version})", path.display()),
        (Some(path), None) => path.display().to_string(),
        (None, _) => "not found".to_owned(),
    };
    [tool.name.to_owned(), path, format!("for {}", tool.used_for)]
}

fn control_row(row: &Row) -> [String; 2] {
    let mechanism = match (&row.mechanism, &row.missing) {
        (_, Some(missing)) => format!("MISSING: {}", missing.what),
        (Some(mechanism), None) => mechanism.clone(),
        (None, None) => String::new(),
    };
    [row.control.to_string(), mechanism]
}
