//! How much of a call is recorded: raised by anyone, never below the operator's floor.

use crate::make::PlanInput;
use crate::model::{Grant, Source};
use skillcell_core::{AuditLevel, Control};

pub(crate) fn decide(input: &PlanInput<'_>, grants: &mut Vec<Grant>) -> AuditLevel {
    let floor = &input.ceiling.audit;
    let asked = input.caller.audit;
    let (wish, by) = match asked {
        Some(level) => (level, Source::flag("--audit")),
        None => (AuditLevel::DEFAULT, Source::Default),
    };
    let (effective, source) = if floor.value > wish {
        (floor.value, Source::from(&floor.origin))
    } else {
        (wish, by)
    };
    grants.push(Grant {
        what: "audit".to_owned(),
        asked: asked.map_or_else(|| "not stated".to_owned(), |level| level.to_string()),
        effective: effective.to_string(),
        narrowed_by: asked
            .is_some_and(|asked| asked < effective)
            .then(|| source.clone()),
        source,
    });
    effective
}

/// What is recorded on this host: where nothing can be handed over and the caller accepted that, the
/// decisions are left.
pub(crate) fn possible(asked: AuditLevel, input: &PlanInput<'_>) -> AuditLevel {
    let degraded = input.caller.allow_degraded.contains(&Control::Audit);
    if degraded && !(input.host.seccomp && input.host.seccomp_notify) {
        AuditLevel::Decisions
    } else {
        asked
    }
}
