//! Why there is no plan, in words that somebody can act on.

use crate::model::Source;
use skillcell_core::{Control, Denial, Isolation, Missing, Reason, Status};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Paths in params, or flags, outside of what is permitted. Never empty.
    #[error("{}", paths_not_granted(denials))]
    PathsNotGranted { denials: Vec<Denial> },
    #[error("{flag} {}: {problem}", path.display())]
    FlagPath {
        flag: &'static str,
        path: PathBuf,
        problem: PathProblem,
    },
    #[error("param `{param}` names {}: {problem}", path.display())]
    ParamPath {
        param: String,
        path: PathBuf,
        problem: PathProblem,
    },
    #[error("isolation `{asked}` is below `{required}`, which {by} requires{}", trust.words())]
    IsolationTooLow {
        asked: Isolation,
        required: Isolation,
        by: Source,
        trust: TrustAnswer,
    },
    #[error("the command line has no in-process level: a skill always runs in a cell")]
    NoInProcess,
    #[error("isolation `{level}`, asked for by {by}, is not part of this build")]
    BackendUnavailable { level: Isolation, by: Source },
    #[error("a sandbox cell can't be made here: {}", missing.what)]
    Namespaces { missing: Missing },
    #[error("network rules can't be enforced at the {level} level; allowed would be {rules}")]
    Egress { level: Isolation, rules: String },
    #[error("the manifest's network rules have {entries} entries, which is too many to compare")]
    TooManyRules { entries: usize },
    /// Every control that nothing on this host can hold. Never empty.
    #[error("{}", controls_missing(missing))]
    Controls { missing: Vec<(Control, Missing)> },
}

/// What is wrong with a host path, whoever may read it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("{0}")]
    Collision(String),
    #[error("no such file or folder")]
    Absent,
    #[error("the path is not UTF-8")]
    NotUtf8,
    #[error("the path is not absolute and resolved")]
    NotResolved,
}

/// Why `--trust` didn't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustAnswer {
    NotGiven,
    Denied(Source),
}

impl TrustAnswer {
    fn words(&self) -> String {
        match self {
            TrustAnswer::NotGiven => String::new(),
            TrustAnswer::Denied(by) => format!(", and {by} doesn't allow --trust"),
        }
    }
}

impl Refusal {
    pub fn status(&self) -> Status {
        match self {
            Refusal::PathsNotGranted { .. } | Refusal::IsolationTooLow { .. } => Status::Denied,
            Refusal::FlagPath { .. } | Refusal::ParamPath { .. } | Refusal::TooManyRules { .. } => {
                Status::InvalidInput
            }
            Refusal::NoInProcess
            | Refusal::BackendUnavailable { .. }
            | Refusal::Namespaces { .. }
            | Refusal::Egress { .. }
            | Refusal::Controls { .. } => Status::Refused,
        }
    }

    pub fn reason(&self) -> Reason {
        match self {
            Refusal::PathsNotGranted { .. } => Reason::PathNotGranted,
            Refusal::FlagPath { .. } => Reason::InvalidUsage,
            Refusal::ParamPath { .. } => Reason::InvalidParams,
            Refusal::IsolationTooLow { .. } => Reason::IsolationTooLow,
            Refusal::TooManyRules { .. } => Reason::InvalidManifest,
            Refusal::NoInProcess | Refusal::BackendUnavailable { .. } => Reason::BackendUnavailable,
            Refusal::Namespaces { .. } | Refusal::Egress { .. } | Refusal::Controls { .. } => {
                Reason::ControlUnavailable
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Refusal::PathsNotGranted { denials } => {
                let mut hints: Vec<&str> = denials.iter().map(|d| d.hint.as_str()).collect();
                hints.dedup();
                hints.join("; ")
            }
            Refusal::FlagPath { problem, .. } | Refusal::ParamPath { problem, .. } => {
                return problem.hint();
            }
            Refusal::IsolationTooLow {
                trust, required, ..
            } => match trust {
                TrustAnswer::NotGiven => {
                    "add --trust if you trust this skill with weaker isolation".to_owned()
                }
                TrustAnswer::Denied(_) => {
                    format!("use --isolation {required}, or ask the operator for `trust: allow`")
                }
            },
            Refusal::NoInProcess => "use --isolation process or sandbox".to_owned(),
            Refusal::BackendUnavailable { .. } => {
                "this build has sandbox and process; a skill that you trust with less runs with \
                 --isolation sandbox --trust"
                    .to_owned()
            }
            Refusal::Namespaces { missing } => format!(
                "{}; or use the process level, which needs no namespaces: --isolation process, \
                 with --trust or with `isolation: {{minimum: process}}` in the operator's policy",
                missing.fix
            ),
            Refusal::Egress { .. } => {
                "that level has no network namespace: use --isolation sandbox; or, to run it \
                 without network, give a policy that allows none, such as a file with the one \
                 line `version: 1`: --policy FILE"
                    .to_owned()
            }
            Refusal::TooManyRules { .. } => "ask the skill's author for fewer rules".to_owned(),
            Refusal::Controls { missing } => {
                let mut fixes: Vec<&str> = missing.iter().map(|(_, m)| m.fix.as_str()).collect();
                fixes.dedup();
                let flags: Vec<_> = missing
                    .iter()
                    .map(|(c, _)| format!("--allow-degraded {c}"))
                    .collect();
                format!(
                    "{}; or accept to run without: {}",
                    fixes.join("; "),
                    flags.join(" ")
                )
            }
        })
    }

    /// For the envelope: what was denied, where something was.
    pub fn denials(&self) -> &[Denial] {
        match self {
            Refusal::PathsNotGranted { denials } => denials,
            _ => &[],
        }
    }
}

impl PathProblem {
    fn hint(&self) -> Option<String> {
        match self {
            PathProblem::Collision(_) => {
                Some("copy what the skill needs to a folder of its own and grant that".to_owned())
            }
            PathProblem::Absent | PathProblem::NotUtf8 | PathProblem::NotResolved => None,
        }
    }
}

fn paths_not_granted(denials: &[Denial]) -> String {
    let paths: Vec<_> = denials.iter().map(|d| d.target.as_str()).collect();
    match paths.as_slice() {
        [one] => format!("{one} is not granted to this skill"),
        many => format!("{} are not granted to this skill", many.join(", ")),
    }
}

fn controls_missing(missing: &[(Control, Missing)]) -> String {
    let all: Vec<_> = missing
        .iter()
        .map(|(c, m)| format!("{c} ({})", m.what))
        .collect();
    format!("this host can't enforce {}", all.join(", "))
}
