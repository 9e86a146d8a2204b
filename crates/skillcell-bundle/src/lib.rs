//! Finds, reads and fingerprints skill bundles on disk.
//!
//! A bundle was written by somebody else, and its folder can hold anything: links to the host's
//! files, pipes that never answer, a manifest of a gigabyte. So the folder is opened once, and
//! everything below it is reached from that descriptor, with the kernel refusing to leave it, and
//! read up to a bound.

mod bundle;
mod description;
mod digest;
mod error;
mod locate;
mod python;
mod root;
mod site_packages;
mod walk;

pub use bundle::{Bundle, BundleKind};
pub use description::Description;
pub use digest::Fingerprint;
pub use error::{BundleError, Class};
pub use locate::{SearchPath, list, locate};
pub use site_packages::site_packages_of_prefix;
