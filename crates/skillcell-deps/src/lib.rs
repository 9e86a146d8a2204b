//! Builds and caches dependency environments inside a build cell.
//!
//! A set of requirements is installed once, by `uv` or `pip`, in a cell that sees the system and the
//! interpreter read-only, may write only the new environment, and holds none of the caller's files
//! but the index settings that the installer needs. What comes out is checked before anything uses
//! it, and moved into the cache in one step.

mod address;
mod build_cell;
mod cache;
mod default_index;
mod diagnose;
mod door;
mod ensure;
mod entry;
mod error;
mod installer;
mod key;
mod launch;
mod lock;
mod named_files;
mod normalise;
mod output;
mod pip_conf;
mod prune;
mod reach;
mod request;
mod run;
mod seal;
mod settings;
mod sources;
mod translate;
mod uv_toml;
mod wheel_file;
mod workspace;

pub use cache::{Cache, Environment};
pub use ensure::ensure;
pub use entry::Entry;
pub use error::{Cause, DepsError};
pub use prune::Prune;
pub use request::{BuildLimits, DepsRequest, NetworkTerms, Progress, PythonFacts, Silent};
