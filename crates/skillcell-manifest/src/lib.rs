//! What a skill asks for. Everything parsed here is hostile input: bounded in size, depth and
//! expansion, and nothing in it grants anything. No I/O: callers hand in text.

mod model;
mod security_policy;

pub use model::{Entry, EnvVar, Manifest, ParamSchema, Runtime};
pub use security_policy::{
    EgressRule, Filesystem, HttpRule, Network, ParamAccess, Resources, SecurityPolicy,
};
