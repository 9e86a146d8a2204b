//! The 28 skills of `skillware`, unchanged, in cells without network.
//!
//! Those with a real offline answer give the same answer as in plain Python. The others fail readably,
//! with their denials in the envelope.

mod compare;
mod offline;
mod online;
mod venv;
