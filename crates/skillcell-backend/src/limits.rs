//! Which limit is held by what, as the plan's receipt says.

use crate::{BackendError, Facts};
use skillcell_core::{AuditLevel, Control};
use skillcell_linux::cell::Resource;
use skillcell_linux::cgroup::{CellCgroup, CgroupLimits};
use skillcell_linux::seccomp::{OwnerlessMemory, Recorded};
use skillcell_plan::Plan;

/// Init or monitor, beside the skill's own processes.
const OWN_PROCESSES: u32 = 1;

/// The call's cgroup, where this host has one for any of its limits.
pub(crate) fn cgroup(plan: &Plan, facts: &Facts<'_>) -> Result<Option<CellCgroup>, BackendError> {
    let held = |control| facts.host.cgroup.for_control(control).is_some();
    let limits = CgroupLimits {
        memory_bytes: held(Control::Memory).then(|| plan.limits.memory.bytes()),
        processes: held(Control::Processes)
            .then(|| u64::from(plan.limits.processes + OWN_PROCESSES)),
        cpu_millis: (held(Control::Cpu) && !all_cpus(plan, facts))
            .then(|| plan.limits.cpu.millis()),
    };
    if facts.host.cgroup.parents.is_empty() {
        return Ok(None);
    }
    Ok(Some(CellCgroup::create(
        &facts.host.cgroup,
        facts.run_id,
        limits,
    )?))
}

fn all_cpus(plan: &Plan, facts: &Facts<'_>) -> bool {
    plan.limits.cpu.millis() >= facts.host.cpus * 1000
}

/// CPUs to pin to, where affinity is what holds the limit.
pub(crate) fn pinned_cpus(plan: &Plan, facts: &Facts<'_>) -> Option<u32> {
    let whole = plan.limits.cpu.millis().is_multiple_of(1000);
    let pin = facts.host.cgroup.cpu.is_none() && whole && !all_cpus(plan, facts);
    pin.then(|| plan.limits.cpu.millis() / 1000)
}

/// Without a cgroup the supervisor adds up processes, and would miss what none of them owns.
pub(crate) fn ownerless_memory(facts: &Facts<'_>) -> OwnerlessMemory {
    match facts.host.cgroup.memory {
        Some(_) => OwnerlessMemory::Counted,
        None => OwnerlessMemory::Denied,
    }
}

/// Per process, besides the limits of the call as a whole.
pub(crate) fn rlimits(plan: &Plan, nproc: Option<u64>) -> Vec<(Resource, u64)> {
    let mut limits = vec![
        (Resource::Core, 0),
        (Resource::OpenFiles, 1024),
        // A hole has no blocks; this keeps what is carried out from being larger than scratch.
        (Resource::FileSize, plan.limits.scratch.bytes()),
        (Resource::LockedMemory, 8 << 20),
        (Resource::MessageQueues, 64 << 10),
    ];
    if let Some(processes) = nproc {
        limits.push((Resource::Processes, processes));
    }
    limits
}

pub(crate) fn own_processes() -> u32 {
    OWN_PROCESSES
}

/// Which allowed calls go to the supervisor, for the level of the record.
pub(crate) fn recorded(plan: &Plan) -> Recorded {
    match plan.audit {
        AuditLevel::Decisions => Recorded::Denials,
        AuditLevel::Security => Recorded::Security,
        AuditLevel::Full => Recorded::Everything,
    }
}
