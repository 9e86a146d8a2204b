//! The plan: a pure function of manifest, operator policy, the caller's grants and host facts.
//!
//! This is the one place where what is asked meets what is allowed, so the risk is here: a
//! dimension in which the plan ends up wider than the policy, or a control in its receipt that
//! nothing will hold. Each dimension has its own file and can only take the narrower of two values;
//! the receipt is made from [`Control::ALL`](skillcell_core::Control::ALL), so none can be
//! forgotten; and what can't be held is a [`Refusal`], not a weaker plan.
//!
//! Backends receive a plan, never a policy. A plan is serialisable, explainable and hashable, and
//! holds no secret values.

#![cfg_attr(
    test,
    allow(clippy::expect_used, reason = "a test that fails may panic")
)]

mod audit;
mod digest;
mod env;
mod files;
mod host_layout;
mod isolation;
mod limits;
mod make;
mod model;
mod network;
mod network_secrets;
mod receipt;
mod refusal;

pub use env::missing_required_env;
pub use make::{PlanInput, plan};
pub use model::{
    Budget, CallerGrants, EnvGrant, FileAccess, FileGrant, Grant, HostPath, Limits, ParamPath,
    PathKind, Plan, PlanNetwork, Requirement, Source,
};
pub use network::effective_egress;
pub use receipt::requirements;
pub use refusal::{PathProblem, Refusal, TrustAnswer};
