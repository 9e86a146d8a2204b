use crate::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DenialKind {
    Network,
    Filesystem,
    Syscall,
    Process,
    Env,
}

impl fmt::Display for DenialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DenialKind::Network => "network",
            DenialKind::Filesystem => "filesystem",
            DenialKind::Syscall => "syscall",
            DenialKind::Process => "process",
            DenialKind::Env => "env",
        })
    }
}

/// Something that the skill tried and the cell did not allow. `target` comes from hostile code:
/// escape it before it meets a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    pub kind: DenialKind,
    pub target: String,
    pub reason: Reason,
    pub count: u64,
    /// What would allow it, as a line of policy or a flag.
    pub hint: String,
}

/// Denials of one call, folded by (kind, target, reason) and bounded: a skill that is denied a
/// million different things can't grow the supervisor.
#[derive(Debug, Default)]
pub struct Denials {
    entries: Vec<Denial>,
    dropped: u64,
}

impl Denials {
    /// Distinct denials kept per call; more are counted in one closing entry per call.
    pub const MAX_DISTINCT: usize = 256;
    const MAX_TARGET: usize = 1024;

    pub fn record(
        &mut self,
        kind: DenialKind,
        target: &str,
        reason: Reason,
        hint: impl Into<String>,
    ) {
        let mut end = target.len().min(Self::MAX_TARGET);
        while !target.is_char_boundary(end) {
            end -= 1;
        }
        let target = &target[..end];
        if let Some(known) = self
            .entries
            .iter_mut()
            .find(|d| d.kind == kind && d.reason == reason && d.target == target)
        {
            known.count += 1;
        } else if self.entries.len() < Self::MAX_DISTINCT {
            self.entries.push(Denial {
                kind,
                target: target.to_owned(),
                reason,
                count: 1,
                hint: hint.into(),
            });
        } else {
            self.dropped += 1;
        }
    }

    /// Takes in what somebody else has seen of the same call.
    pub fn absorb(&mut self, other: Denials) {
        self.dropped += other.dropped;
        for denial in other.entries {
            self.add(denial);
        }
    }

    /// Takes in a denial with its count.
    pub fn add(&mut self, denial: Denial) {
        let room = self.entries.len() < Self::MAX_DISTINCT;
        match self.entries.iter_mut().find(|d| {
            d.kind == denial.kind && d.reason == denial.reason && d.target == denial.target
        }) {
            Some(known) => known.count += denial.count,
            None if room => self.entries.push(denial),
            None => self.dropped += 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn into_vec(mut self) -> Vec<Denial> {
        if self.dropped > 0
            && let Some(last) = self.entries.last().cloned()
        {
            self.entries.push(Denial {
                target: format!("({} more distinct targets)", self.dropped),
                count: self.dropped,
                ..last
            });
        }
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_denials_fold_and_distinct_ones_are_bounded() {
        let mut denials = Denials::default();
        for i in 0..(Denials::MAX_DISTINCT * 2) {
            denials.record(
                DenialKind::Network,
                &format!("h{i}"),
                Reason::NetworkNotAllowed,
                "",
            );
            denials.record(DenialKind::Network, "h0", Reason::NetworkNotAllowed, "");
        }
        let all = denials.into_vec();
        assert_eq!(all.len(), Denials::MAX_DISTINCT + 1);
        assert_eq!(all[0].count, 1 + 2 * Denials::MAX_DISTINCT as u64);
        assert_eq!(
            all[Denials::MAX_DISTINCT].count,
            Denials::MAX_DISTINCT as u64
        );
    }

    #[test]
    fn long_targets_are_cut_on_a_character() {
        let mut denials = Denials::default();
        denials.record(
            DenialKind::Filesystem,
            &"é".repeat(2000),
            Reason::PathNotWritable,
            "",
        );
        assert!(denials.into_vec()[0].target.len() <= Denials::MAX_TARGET);
    }
}
