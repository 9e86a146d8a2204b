//! The vocabulary that every part of Skillcell shares.
//!
//! Nothing here does I/O. Values that matter for security have private fields and are made only by
//! parsing, serde included, so that an invalid one can't exist.

mod control;
mod denial;
mod envelope;
mod host_facts;
mod host_pattern;
mod ids;
mod isolation;
mod reason;
mod size;
mod span;

pub use control::{Control, Enforcement, EnforcementStatus};
pub use denial::{Denial, DenialKind, Denials};
pub use envelope::{AuditRef, Captured, Envelope, ErrorBody, SkillRef, Status, Usage};
pub use host_facts::{CgroupFacts, CgroupVersion, HostFacts, Missing};
pub use host_pattern::{HostPattern, HostPatternError};
pub use ids::{Digest, EnvName, IdError, RunId, SkillId};
pub use isolation::Isolation;
pub use reason::Reason;
pub use size::{ByteSize, CpuCount, SizeError, Timeout};
pub use span::Location;
