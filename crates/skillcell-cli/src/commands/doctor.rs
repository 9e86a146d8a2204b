//! What this host can enforce.

mod text;
mod tools;

use crate::args::DoctorArgs;
use crate::output;
use serde::Serialize;
use skillcell_core::{AuditLevel, Control, HostFacts, Isolation, Missing, Status};
use skillcell_plan::{Limits, PlanNetwork, Requirement, requirements};
use std::process::ExitCode;
use tools::Tool;

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
        tools: tools::tools(),
        levels,
        host,
    };
    if args.json {
        output::json_value(&report);
    } else {
        output::print(&text::of(&report));
    }
    if ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Status::Refused.exit_code())
    }
}

fn level(isolation: Isolation, host: &HostFacts) -> Level {
    let controls: Vec<Row> = requirements(
        isolation,
        &Limits::default(),
        &PlanNetwork::default(),
        AuditLevel::DEFAULT,
        host,
    )
    .into_iter()
    .map(|Requirement { control, mechanism }| {
        let (mechanism, missing) = match (mechanism, without_namespaces(isolation, host)) {
            (Ok(_), Some(missing)) if by_namespaces(control, host) => (None, Some(missing.clone())),
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
fn by_namespaces(control: Control, host: &HostFacts) -> bool {
    match control {
        Control::Identity
        | Control::Filesystem
        | Control::Network
        | Control::HostProcesses
        | Control::Ipc
        | Control::Cleanup
        | Control::Scratch => true,
        // Counted per namespace where there is no cgroup to count in.
        Control::Memory | Control::Processes => host.cgroup.for_control(control).is_none(),
        _ => false,
    }
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
