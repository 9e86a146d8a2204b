//! HTTP as the door sees it.

pub mod guard;

pub(crate) use guard::HeadReader;
pub use guard::{Framing, Guard, Head, Header, HttpFault, Version, parse_head};
