//! Quotas: the smaller of what is asked for and what is allowed.

use crate::make::PlanInput;
use crate::model::{Grant, Limits, Source};
use skillcell_core::{ByteSize, CpuCount, Timeout};
use skillcell_policy::Bounded;
use std::fmt::Display;

const TIMEOUT: Timeout = Timeout::secs(30);
const CPU: CpuCount = CpuCount::whole(1);
const MEMORY: ByteSize = ByteSize::mib(256);
const PROCESSES: u32 = 32;
const OUTPUT: ByteSize = ByteSize::mib(1);
const SCRATCH: ByteSize = ByteSize::mib(64);

pub(crate) fn decide(input: &PlanInput<'_>, grants: &mut Vec<Grant>) -> Limits {
    let caller = input.caller;
    let asked = &input.manifest.security_policy.resources;
    let filesystem = &input.manifest.security_policy.filesystem;
    let allowed = &input.ceiling.limits;
    let mut narrow = Narrow { grants };
    let timeout = caller.timeout.map(|t| (t, "--timeout"));
    let memory = caller.memory.map(|m| (m, "--memory"));
    // Zero processes is no quota that anything could run under.
    let processes = asked.processes.map(|n| n.max(1));
    let scratch = narrow.limit(
        "filesystem.scratch",
        None,
        filesystem.scratch,
        SCRATCH,
        &allowed.scratch,
    );
    Limits {
        timeout: narrow.limit(
            "resources.timeout",
            timeout,
            asked.timeout,
            TIMEOUT,
            &allowed.timeout,
        ),
        cpu: narrow.limit("resources.cpu", None, asked.cpu, CPU, &allowed.cpu),
        memory: narrow.limit(
            "resources.memory",
            memory,
            asked.memory,
            MEMORY,
            &allowed.memory,
        ),
        processes: narrow.limit(
            "resources.processes",
            None,
            processes,
            PROCESSES,
            &allowed.processes,
        ),
        output: narrow.limit(
            "resources.output",
            None,
            asked.output,
            OUTPUT,
            &allowed.output,
        ),
        scratch,
        scratch_inodes: inodes(scratch),
    }
}

pub(crate) struct Narrow<'a> {
    pub(crate) grants: &'a mut Vec<Grant>,
}

impl Narrow<'_> {
    pub(crate) fn limit<T: Ord + Copy + Display>(
        &mut self,
        what: &str,
        caller: Option<(T, &str)>,
        manifest: Option<T>,
        default: T,
        ceiling: &Bounded<T>,
    ) -> T {
        let (asked, source) = match (caller, manifest) {
            (Some((value, flag)), _) => (value, Source::flag(flag)),
            (None, Some(value)) => (value, Source::Manifest),
            (None, None) => (default, Source::Default),
        };
        let effective = asked.min(ceiling.value);
        self.grants.push(Grant {
            what: what.to_owned(),
            asked: asked.to_string(),
            effective: effective.to_string(),
            source,
            narrowed_by: (effective < asked).then(|| Source::from(&ceiling.origin)),
        });
        effective
    }
}

impl Default for Limits {
    /// What a skill gets that asks for nothing.
    fn default() -> Self {
        Limits {
            timeout: TIMEOUT,
            cpu: CPU,
            memory: MEMORY,
            processes: PROCESSES,
            output: OUTPUT,
            scratch: SCRATCH,
            scratch_inodes: inodes(SCRATCH),
        }
    }
}

/// One inode per page of scratch. Inodes are kernel memory, so there is a most; a skill needs a few
/// even in a tiny scratch, so there is a least.
fn inodes(scratch: ByteSize) -> u64 {
    (scratch.bytes() / 4096).clamp(256, 1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_follow_the_size_of_scratch_within_bounds() {
        assert_eq!(inodes(SCRATCH), 16384);
        assert_eq!(inodes(ByteSize::parse("1B").expect("a size")), 256);
        assert_eq!(inodes(ByteSize::mib(1 << 20)), 1 << 20);
    }
}
