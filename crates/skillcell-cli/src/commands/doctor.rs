//! What this host can enforce.

use crate::args::DoctorArgs;
use crate::output;
use crate::table::{heading, table};
use serde::Serialize;
use skillcell_core::{CgroupVersion, Control, HostFacts, Isolation, Missing, Status};
use skillcell_plan::{Limits, Requirement, requirements};
use skillcell_supervisor::{Python, find_program};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Serialize)]
struct Report {
    /// The sandbox level is fully available.
    ready: bool,
    host: HostFacts,
    levels: Vec<Level>,
    tools: Vec<Tool>,
    problems: Vec<Missing>,
}

#[derive(Serialize)]
struct Level {
    isolation: Isolation,
    available: bool,
    controls: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    control: Control,
    mechanism: Option<String>,
    missing: Option<Missing>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    path: Option<PathBuf>,
    version: Option<String>,
    used_for: &'static str,
}

pub(crate) fn doctor(args: &DoctorArgs) -> ExitCode {
    // Makes namespaces in a child; nothing in this process has started a thread.
    let host = skillcell_linux::probe::thorough();
    let levels: Vec<Level> = [Isolation::Sandbox, Isolation::Process]
        .map(|isolation| level(isolation, &host))
        .into();
    let ready = levels
        .iter()
        .any(|l| l.isolation == Isolation::Sandbox && l.available);
    let report = Report {
        ready,
        problems: problems(&host, &levels),
        tools: tools(),
        levels,
        host,
    };
    if args.json {
        output::json_value(&report);
    } else {
        output::print(&as_text(&report));
    }
    if ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Status::Refused.exit_code())
    }
}

fn level(isolation: Isolation, host: &HostFacts) -> Level {
    let controls: Vec<Row> = requirements(isolation, &Limits::default(), host)
        .into_iter()
        .map(|Requirement { control, mechanism }| {
            let (mechanism, missing) = match (mechanism, without_namespaces(isolation, host)) {
                (Ok(_), Some(missing)) if by_namespaces(control) => (None, Some(missing.clone())),
                (Ok(mechanism), _) => (Some(mechanism), None),
                (Err(missing), _) => (None, Some(missing)),
            };
            Row {
                control,
                mechanism,
                missing,
            }
        })
        .collect();
    Level {
        isolation,
        available: controls.iter().all(|row| row.missing.is_none()),
        controls,
    }
}

/// Why a cell of this level can't have its namespaces, where it needs them.
fn without_namespaces(isolation: Isolation, host: &HostFacts) -> Option<&Missing> {
    match isolation {
        Isolation::Sandbox => host.namespaces.as_ref().err(),
        _ => None,
    }
}

/// Held by namespaces and mounts in a sandbox cell. The plan asks for namespaces once, before any
/// control; a table of controls has to say it for each.
fn by_namespaces(control: Control) -> bool {
    matches!(
        control,
        Control::Identity
            | Control::Filesystem
            | Control::Network
            | Control::HostProcesses
            | Control::Ipc
            | Control::Cleanup
            | Control::Scratch
    )
}

/// What is missing, each once.
fn problems(host: &HostFacts, levels: &[Level]) -> Vec<Missing> {
    let of_levels = levels
        .iter()
        .flat_map(|level| level.controls.iter().filter_map(|row| row.missing.clone()));
    let all = host
        .namespaces
        .clone()
        .err()
        .into_iter()
        .chain(host.cgroup.missing.clone())
        .chain(of_levels);
    let mut problems: Vec<Missing> = Vec::new();
    for missing in all {
        if !problems.contains(&missing) {
            problems.push(missing);
        }
    }
    problems
}

fn tools() -> Vec<Tool> {
    let python = Python::find(None, None).ok();
    let version = python
        .as_ref()
        .map(|p| format!("{}.{}", p.version.0, p.version.1));
    let pip = python.as_ref().and_then(pip_of);
    let tool = |name, used_for| Tool {
        name,
        path: find_program(name),
        version: None,
        used_for,
    };
    vec![
        Tool {
            name: "python3",
            path: python.map(|p| p.executable),
            version,
            used_for: "Python skills",
        },
        tool("node", "Node skills"),
        tool("bash", "shell skills"),
        tool("uv", "installing packages"),
        Tool {
            name: "pip",
            path: pip,
            version: None,
            used_for: "installing packages where uv is absent",
        },
    ]
}

/// The interpreter's own pip, or the one that comes with it.
fn pip_of(python: &Python) -> Option<PathBuf> {
    let (major, minor) = python.version;
    let bundled = format!("lib/python{major}.{minor}/ensurepip/_bundled");
    python
        .site_packages()
        .into_iter()
        .map(|folder| folder.join("pip"))
        .chain([python.prefix.join(bundled)])
        .find(|folder| folder.is_dir())
}

fn as_text(report: &Report) -> String {
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
    let parents: Vec<String> = parents.iter().map(|p| p.display().to_string()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use skillcell_core::CgroupFacts;

    fn host(namespaces: Result<(), Missing>) -> HostFacts {
        HostFacts {
            kernel: "6.8".into(),
            root: false,
            privileged: false,
            namespaces,
            landlock_abi: 6,
            seccomp: true,
            seccomp_notify: true,
            cgroup: CgroupFacts::default(),
            cpus: 4,
            container: None,
        }
    }

    #[test]
    fn without_namespaces_no_control_that_needs_them_is_called_held() {
        let missing = Missing {
            what: "AppArmor restricts user namespaces of ordinary users".into(),
            fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".into(),
        };
        let facts = host(Err(missing.clone()));
        let sandbox = level(Isolation::Sandbox, &facts);
        assert!(!sandbox.available);
        for row in &sandbox.controls {
            let held = row.mechanism.as_deref().unwrap_or_default();
            assert!(
                !held.contains("namespace") && !held.contains("tmpfs"),
                "{held}"
            );
        }
        let process = level(Isolation::Process, &facts);
        assert!(
            process
                .controls
                .iter()
                .all(|row| row.missing.as_ref() != Some(&missing))
        );
        let problems = problems(&facts, &[sandbox, process]);
        assert_eq!(problems.iter().filter(|p| **p == missing).count(), 1);
    }
}
