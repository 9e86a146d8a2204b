//! The daemon: who may use it, what it answers, and that a call through it is the call that
//! `skillcell run` would have made.

mod api;
mod daemon;
mod ends;
mod load;
mod peers;
mod same_as_cold;
mod schema;
mod streams;
mod tokens;
mod warm;
mod warm_residue;

use skillcell_tests::{Cell, Level, User};
use std::path::PathBuf;

fn cell() -> Cell {
    Cell::new(Level::Sandbox, User::Caller)
}

/// A Python skill whose `execute` has this body.
fn execute(cell: &Cell, body: &str) -> PathBuf {
    skill(cell, "subject", "", body)
}

fn skill(cell: &Cell, name: &str, manifest: &str, body: &str) -> PathBuf {
    let lines: String = body.lines().map(|l| format!("        {l}\n")).collect();
    cell.bundle(
        name,
        &[
            (
                "manifest.yaml",
                &format!("name: {name}\nversion: 1.0.0\n{manifest}"),
            ),
            (
                "skill.py",
                &format!("class Subject:\n    def execute(self, params):\n{lines}"),
            ),
        ],
    )
}
