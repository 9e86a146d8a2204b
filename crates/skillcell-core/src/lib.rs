//! The vocabulary that every part of Skillcell shares.
//!
//! Nothing here does I/O. Values that matter for security have private fields and are made only by
//! parsing, serde included, so that an invalid one can't exist.

mod address_class;
mod audit_level;
mod control;
mod denial;
mod egress_event;
mod envelope;
mod host;
mod host_facts;
mod host_pattern;
mod ids;
mod isolation;
mod normal_path;
mod proxy_ports;
mod reason;
mod size;
mod span;

pub use address_class::{AddressClass, embedded_ipv4};
pub use audit_level::AuditLevel;
pub use control::{Control, Enforcement, EnforcementStatus};
pub use denial::{Denial, DenialKind, Denials};
pub use egress_event::{Adapter, EgressEvent};
pub use envelope::{AuditRef, Captured, Envelope, ErrorBody, SkillRef, Status, Usage};
pub use host::{DomainName, Host, HostError};
pub use host_facts::{
    CgroupController, CgroupFacts, CgroupParent, CgroupVersion, HostFacts, Missing,
};
pub use host_pattern::{DenyPattern, HostPattern, HostPatternError, is_public_suffix};
pub use ids::{Digest, EnvName, IdError, RunId, SkillId};
pub use isolation::Isolation;
pub use normal_path::{NormalPath, PathError};
pub use proxy_ports::{HTTP_PROXY_PORT, SOCKS_PORT};
pub use reason::Reason;
pub use size::{ByteSize, CpuCount, SizeError, Timeout};
pub use span::Location;
