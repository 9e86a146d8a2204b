//! Making a cell: what it holds is data (`spec`), the supervisor's half is `spawn`, the half that
//! runs inside before the skill is `inside` (namespaces) or `bare` (none), and `payload` is the last
//! step of both. `init` is what PID 1 becomes.

mod bare;
mod handover;
mod idmap;
mod init;
mod inside;
mod payload;
mod proc_view;
mod spawn;
mod spec;

pub use crate::mount::{Bind, BindAccess};
pub use handover::CellShape;
pub use init::{INIT_ARGV0, init_main};
pub use spawn::{Cell, Exit, Made, make, spawn};
pub use spec::{
    CellSpec, Exec, Ids, NamespaceSpec, NetworkSpace, Node, Resource, Scratch, Start, World,
};
