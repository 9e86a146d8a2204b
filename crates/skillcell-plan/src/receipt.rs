//! The receipt: for every control, what will hold it on this host.
//!
//! The list of controls is closed and each level answers for all of them in one `match`, so a new
//! control doesn't compile until somebody says what holds it. A control that nothing can hold is a
//! refusal; the caller may accept that by name, and the receipt then says so.

mod process;
mod quota;
mod sandbox;

use crate::make::PlanInput;
use crate::model::{Limits, PlanNetwork, Requirement};
use crate::refusal::Refusal;
use skillcell_core::{
    AuditLevel, Control, Enforcement, EnforcementStatus, HostFacts, Isolation, Missing,
};

/// What holds a control, or why nothing can.
type Mechanism = Result<String, Missing>;

/// One per control, in the order of [`Control::ALL`].
pub fn requirements(
    level: Isolation,
    limits: &Limits,
    network: &PlanNetwork,
    audit: AuditLevel,
    host: &HostFacts,
) -> Vec<Requirement> {
    Control::ALL
        .into_iter()
        .map(|control| Requirement {
            control,
            mechanism: match level {
                Isolation::Process => process::mechanism(control, limits, audit, host),
                Isolation::Sandbox => sandbox::mechanism(control, limits, network, audit, host),
                Isolation::InProcess
                | Isolation::Wasm
                | Isolation::Container
                | Isolation::Microvm => Err(missing(
                    format!("this build makes no {level} cells"),
                    "use --isolation sandbox or process",
                )),
            },
        })
        .collect()
}

pub(crate) fn decide(
    level: Isolation,
    limits: &Limits,
    network: &PlanNetwork,
    audit: AuditLevel,
    input: &PlanInput<'_>,
) -> Result<Vec<Enforcement>, Refusal> {
    let mut receipt = Vec::new();
    let mut unheld = Vec::new();
    for Requirement { control, mechanism } in
        requirements(level, limits, network, audit, input.host)
    {
        let (mechanism, status) = match mechanism {
            Ok(mechanism) => (mechanism, EnforcementStatus::Enforced),
            Err(missing) if input.caller.allow_degraded.contains(&control) => (
                format!("none: {}", missing.what),
                EnforcementStatus::Degraded,
            ),
            Err(missing) => {
                unheld.push((control, missing));
                continue;
            }
        };
        receipt.push(Enforcement {
            control,
            mechanism,
            status,
        });
    }
    if unheld.is_empty() {
        Ok(receipt)
    } else {
        Err(Refusal::Controls { missing: unheld })
    }
}

fn missing(what: impl Into<String>, fix: &str) -> Missing {
    Missing {
        what: what.into(),
        fix: fix.to_owned(),
    }
}

/// Held by the same means at every level.
fn held(mechanism: impl Into<String>) -> Mechanism {
    Ok(mechanism.into())
}

/// The record is the supervisor's at every level of isolation.
fn record(level: AuditLevel, host: &HostFacts) -> Mechanism {
    let log = format!("chained log of the supervisor, level {level}");
    match level {
        AuditLevel::Decisions => held(log),
        AuditLevel::Security | AuditLevel::Full => {
            seccomp_notify(host, &format!("{log}, by seccomp notification"))
        }
    }
}

fn seccomp(host: &HostFacts, mechanism: &str) -> Mechanism {
    if host.seccomp {
        held(mechanism)
    } else {
        Err(missing(
            "the kernel has no seccomp filters",
            "use a kernel with CONFIG_SECCOMP_FILTER=y",
        ))
    }
}

fn seccomp_notify(host: &HostFacts, mechanism: &str) -> Mechanism {
    if host.seccomp && host.seccomp_notify {
        held(mechanism)
    } else {
        Err(missing(
            "seccomp can't notify the supervisor here, so denied calls would go unseen",
            "use Linux 5.5 or later, outside of other tools that hold a seccomp listener",
        ))
    }
}
