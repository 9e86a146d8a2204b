//! The network door of a cell. Today it is shut: every name is answered NXDOMAIN by a stub that
//! the supervisor serves inside the cell, so that what a skill wanted to reach is known by name.

mod dns;

pub use dns::{Question, refuse};
