//! Safe wrappers over the kernel interfaces that make a cell, and probes for what this host has.
//!
//! This is the only crate with `unsafe`. Everything exported is safe to call; a step that fails
//! says which step it was and never leaves the cell weaker.

mod caps;
pub mod cell;
pub mod cgroup;
pub mod channel;
mod clone;
mod error;
mod fdpass;
pub mod host;
pub mod image;
mod landlock_domain;
mod mount;
mod netns;
pub mod probe;
pub mod procfs;
pub mod seccomp;
mod sys;
pub mod system;

pub use error::{LinuxError, Step};
pub use landlock_domain::{DomainRules, Network as DomainNetwork};
pub use sys::{
    EndedChildren, allow_interrupts, ended_children, interrupt_thread, kill_by_pidfd, pipe_pair,
    sealed_memfd, set_nonblocking, termination_signals,
};
