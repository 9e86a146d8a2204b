use serde::Serialize;
use skillcell_core::{Denial, Digest, EgressEvent, Isolation, Reason, SkillRef, Status, Usage};

/// Something that happened in a call. Values of variables and params never appear.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    CallStarted {
        skill: SkillRef,
        isolation: Isolation,
        trusted: bool,
        plan: Digest,
    },
    /// A name that was asked for, or a connection, at the cell's network door.
    Egress(EgressEvent),
    /// More of those than are kept for one call.
    EgressDropped { count: u64 },
    CallEnded {
        status: Status,
        reason: Option<Reason>,
        denials: Vec<Denial>,
        usage: Usage,
    },
}

impl Event {
    pub fn call_started(
        skill: &SkillRef,
        isolation: Isolation,
        trusted: bool,
        plan: &Digest,
    ) -> Event {
        Event::CallStarted {
            skill: skill.clone(),
            isolation,
            trusted,
            plan: plan.clone(),
        }
    }

    pub fn call_ended(
        status: Status,
        reason: Option<Reason>,
        denials: &[Denial],
        usage: Usage,
    ) -> Event {
        Event::CallEnded {
            status,
            reason,
            denials: denials.to_vec(),
            usage,
        }
    }
}
