//! What a cell promises, one claim per test. Every claim has its counter-proof: the same probe, run
//! outside a cell, reaches what it wants. The list of test names is the list of guarantees.

mod bytecode;
mod descriptors;
mod environment;
mod files;
mod floods;
mod host_sockets;
mod identity;
mod leftovers;
mod limits;
mod network;
mod not_promised;
mod outputs;
mod params;
mod processes;
mod results;
mod sockets;
mod supervisor;
mod syscalls;
mod writes;
