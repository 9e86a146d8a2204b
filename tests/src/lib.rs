//! The harness that the suites share: it finds the built `skillcell`, runs it as the caller or as an
//! ordinary user, bounds every child in time, and checks after every call that nothing is left.
//!
//! Nothing here links against the product: the suites see what a user sees.

mod caller;
mod cell;
mod child;
mod claim;
mod leaks;
mod outcome;
mod probe;
mod running;
mod stage;
pub mod warm;

pub use caller::User;
pub use cell::{Call, Cell, Level};
pub use child::{Child, Finished};
pub use leaks::cgroups_named;
pub use outcome::Outcome;
pub use probe::{Plain, Probe};
pub use running::{Running, processes_named, status_field};
pub use stage::{Stage, copy_tree};

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// No child of a suite lives longer than this.
pub const CHILD_LIMIT: Duration = Duration::from_secs(180);

static MACHINE: RwLock<()> = RwLock::new(());

/// Held by every test that can share the machine with others.
pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by a test that counts what is on the machine, and so must be alone.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
        .to_owned()
}

/// The virtualenv with the packages of `scripts/test-requirements.txt`.
pub fn venv() -> PathBuf {
    let path = std::env::var_os("SKILLCELL_TEST_VENV")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            panic!(
                "SKILLCELL_TEST_VENV is not set: scripts/test makes a virtualenv from \
                 scripts/test-requirements.txt and sets it"
            )
        });
    assert!(
        path.join("bin/python").exists(),
        "{} is no virtualenv",
        path.display()
    );
    path
}

/// A folder of `examples/skills/`.
pub fn example(name: &str) -> PathBuf {
    repository().join("examples/skills").join(name)
}
