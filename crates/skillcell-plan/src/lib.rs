//! The plan: a pure function of manifest, operator policy, the caller's grants and host facts.
//!
//! Backends receive a plan, never a policy. A plan is serialisable, explainable and hashable, and
//! holds no secret values.

mod model;

pub use model::{
    CallerGrants, EnvGrant, FileAccess, FileGrant, Grant, HostPath, Limits, ParamPath, PathKind, Plan, Requirement, Source,
};
