//! One call, from a request to its outcome.
//!
//! `prepare` finds the skill, makes the plan and checks the input; nothing runs. `run` starts the
//! cell, watches it, and turns what came of it into an envelope. Whatever happens there is one.

mod call;
mod collect;
mod door;
mod door_journal;
mod error;
mod explain;
mod install;
mod interpreter;
mod marshal;
mod name_stub;
mod network_view;
mod observe;
mod outcome;
mod params;
mod paths;
mod prepare;
mod program;
mod quota;
mod record;
mod request;
mod result;
mod shelf;
mod simple_schema;
mod warm;
mod watch;

pub use call::run;
pub use error::CallError;
pub use explain::{Explanation, Interprets, explain};
pub use install::{Installed, prepare_dependencies};
pub use interpreter::{Python, find_program};
pub use network_view::{NetworkView, network_view};
pub use params::check_schema;
pub use prepare::{Dependencies, Known, Ready, dependencies, open_bundle, prepare};
pub use request::{Caller, EnvArg, Interaction, ParamsSource, Printed, Quiet, Request};
pub use warm::{Cold, FirstCall, NURSERY_ARGV0, Pool, PoolCounts, PoolTerms, nursery_main};

use serde_json::value::RawValue;

/// The outcome of a call, with the result as the skill gave it.
pub type Outcome = skillcell_core::Envelope<Box<RawValue>>;

/// Parses a skill's result frame; for fuzzing.
#[doc(hidden)]
pub fn fuzz_result(bytes: &[u8]) {
    // Any answer will do, as long as there is one.
    drop(result::from_frame(bytes));
    drop(result::check_json(&String::from_utf8_lossy(bytes)));
}
