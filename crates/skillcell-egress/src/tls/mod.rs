//! What a TLS client says in the clear.

pub mod client_hello;

pub use client_hello::ClientHello;
