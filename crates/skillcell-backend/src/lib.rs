//! Makes cells from plans, one module per kind of cell. A backend receives a plan, never a policy.
//!
//! A call's life is in the types: a [`Plan`] is prepared to a [`Prepared`], made to a [`Made`] cell,
//! and started to a [`Running`] one. Nothing of the skill has run before that.

mod error;
mod launch;
mod limits;
mod process;
mod sandbox;

pub use error::BackendError;
pub use launch::{
    Begin, Facts, Launch, Layout, Made, Network, OutputFolder, Params, Prepared, Program, Running,
    StagedFolder, Trust,
};
pub use process::staged_outputs;
pub use sandbox::{DEPS, MAX_PORTS, SCRATCH, SKILL, TRUST_BUNDLE};

use skillcell_core::Isolation;
use skillcell_plan::Plan;

/// One kind of cell.
pub trait Backend {
    fn isolation(&self) -> Isolation;

    /// Where things will be inside, so that command lines can be made.
    fn layout(&self, facts: &Facts<'_>) -> Result<Layout, BackendError>;

    /// Opens and checks everything that the cell will hold. Nothing runs yet.
    fn prepare(
        &self,
        plan: &Plan,
        facts: &Facts<'_>,
        layout: Layout,
        launch: Launch,
    ) -> Result<Prepared, BackendError>;
}

/// The backend for a level, if this build has it.
pub fn for_level(isolation: Isolation) -> Option<&'static dyn Backend> {
    match isolation {
        Isolation::Sandbox => Some(&sandbox::Sandbox),
        Isolation::Process => Some(&process::Process),
        _ => None,
    }
}
