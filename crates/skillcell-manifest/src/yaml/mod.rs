//! YAML as a tree in which every node knows its place.
//!
//! A manifest is checked field by field, long after the text is gone, and each complaint names a
//! line and a column; so the tree keeps them. It is built from parser events with a loop instead
//! of recursion, and every node, copied ones included, is paid for from one budget: neither deep
//! nesting nor aliases of aliases can exhaust stack or memory.
//!
//! Scalars follow the core schema of YAML 1.2 (`off` is text). Merge keys and tags other than
//! `!!str` are refused, because what they mean differs between parsers, and a policy that two
//! programs read differently is worth nothing.

mod access;
mod build;
mod decode;
mod json;
mod node;
mod refuse;
mod scalar;

pub use build::parse;
pub(crate) use build::parse_from_line;
pub use decode::DecodeError;
pub use node::{Entry, Node, Value};
pub use scalar::{Resolved, Scalar};
