//! What holds quotas: a cgroup where one can be had, else the next best that holds for the call as
//! a whole.

use super::{Mechanism, held, missing};
use crate::model::Limits;
use skillcell_core::{Control, HostFacts};

pub(super) fn timeout(limits: &Limits) -> String {
    format!("supervisor clock, {}", limits.timeout)
}

pub(super) fn output(limits: &Limits) -> String {
    format!("supervisor count, {}", limits.output)
}

pub(super) fn memory(limits: &Limits, host: &HostFacts, otherwise: &str) -> String {
    match host.cgroup.for_control(Control::Memory) {
        Some(version) => format!("{} memory, {}", version.as_str(), limits.memory),
        None => format!("{otherwise}, {}", limits.memory),
    }
}

pub(super) fn processes(limits: &Limits, host: &HostFacts, otherwise: &str) -> String {
    match host.cgroup.for_control(Control::Processes) {
        Some(version) => format!("{} pids, {}", version.as_str(), limits.processes),
        None => format!("{otherwise}, {}", limits.processes),
    }
}

/// Affinity counts whole CPUs only; a part of one needs a cgroup.
pub(super) fn cpu(limits: &Limits, host: &HostFacts) -> Mechanism {
    let asked = limits.cpu.millis();
    // A host of which nothing is known has at least one.
    if asked >= host.cpus.max(1).saturating_mul(1000) {
        return held("all CPUs of the host allowed");
    }
    if let Some(version) = host.cgroup.for_control(Control::Cpu) {
        return held(format!("{} quota, {} CPUs", version.as_str(), limits.cpu));
    }
    if asked.is_multiple_of(1000) {
        return held(format!(
            "affinity to {} CPUs, sched_setaffinity denied",
            asked / 1000
        ));
    }
    let fix = host
        .cgroup
        .missing
        .as_ref()
        .map(|m| format!("{}; or ", m.fix))
        .unwrap_or_default();
    Err(missing(
        format!(
            "{} CPUs is not a whole number, and no cgroup with a cpu controller can be had",
            limits.cpu
        ),
        &format!("{fix}use a whole number of CPUs"),
    ))
}

/// Where a cgroup holds a quota, its members are killed through it as well.
pub(super) fn with_cgroup(mechanism: &str, host: &HostFacts) -> String {
    let cgroup = &host.cgroup;
    match cgroup.pids.or(cgroup.memory).or(cgroup.cpu) {
        Some(version) => format!("{mechanism}, {}", version.as_str()),
        None => mechanism.to_owned(),
    }
}
