//! The level of isolation: raised by anyone, lowered only by the operator's floor or by `--trust`.

use crate::make::PlanInput;
use crate::model::{Grant, Source};
use crate::refusal::{Refusal, TrustAnswer};
use skillcell_core::{HostFacts, Isolation};
use skillcell_policy::Trust;

pub(crate) struct Level {
    pub(crate) effective: Isolation,
    pub(crate) trusted: bool,
    source: Source,
}

pub(crate) fn decide(input: &PlanInput<'_>, grants: &mut Vec<Grant>) -> Result<Level, Refusal> {
    let floor = &input.ceiling.isolation;
    let asked = input.manifest.execution;
    // The least that is due without `--trust`, and who says so.
    let (required, by) = match asked {
        Some(level) if level > floor.value => (level, Source::Manifest),
        _ => (floor.value, Source::from(&floor.origin)),
    };
    let level = match input.caller.isolation {
        Some(Isolation::InProcess) => return Err(Refusal::NoInProcess),
        Some(flag) if flag >= required => level(flag, false, Source::flag("--isolation")),
        Some(flag) => {
            let refused = match (input.ceiling.trust.value, input.caller.trust) {
                (Trust::Allow, true) => None,
                (Trust::Allow, false) => Some(TrustAnswer::NotGiven),
                (Trust::Deny, _) => Some(TrustAnswer::Denied(Source::from(
                    &input.ceiling.trust.origin,
                ))),
            };
            if let Some(trust) = refused {
                return Err(Refusal::IsolationTooLow {
                    asked: flag,
                    required,
                    by,
                    trust,
                });
            }
            level(flag, true, Source::flag("--isolation"))
        }
        None => unasked(asked, required, by),
    };
    grants.push(Grant {
        what: "isolation".to_owned(),
        asked: asked.map_or_else(|| "not stated".to_owned(), |level| level.to_string()),
        effective: level.effective.to_string(),
        source: level.source.clone(),
        narrowed_by: asked
            .is_some_and(|asked| asked < level.effective)
            .then(|| Source::from(&floor.origin)),
    });
    Ok(level)
}

/// Without a flag. A manifest that asks for less than the default is heard only where the floor
/// lets it; `in_process` is a request for trust and is read as `process` there.
fn unasked(asked: Option<Isolation>, required: Isolation, by: Source) -> Level {
    match asked {
        Some(Isolation::InProcess | Isolation::Process) if required <= Isolation::Process => {
            level(Isolation::Process, false, Source::Manifest)
        }
        Some(wish) if wish == required => level(wish, false, Source::Manifest),
        _ if required > Isolation::DEFAULT => level(required, false, by),
        _ => level(Isolation::DEFAULT, false, Source::Default),
    }
}

fn level(effective: Isolation, trusted: bool, source: Source) -> Level {
    Level {
        effective,
        trusted,
        source,
    }
}

/// This build makes `sandbox` and `process` cells, and a `sandbox` needs namespaces.
pub(crate) fn must_be_available(level: &Level, host: &HostFacts) -> Result<(), Refusal> {
    match level.effective {
        Isolation::Sandbox => match &host.namespaces {
            Ok(()) => Ok(()),
            Err(missing) => Err(Refusal::Namespaces {
                missing: missing.clone(),
            }),
        },
        Isolation::Process => Ok(()),
        Isolation::InProcess => Err(Refusal::NoInProcess),
        unavailable @ (Isolation::Wasm | Isolation::Container | Isolation::Microvm) => {
            Err(Refusal::BackendUnavailable {
                level: unavailable,
                by: level.source.clone(),
            })
        }
    }
}
