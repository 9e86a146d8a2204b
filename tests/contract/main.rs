//! The contract that callers build on: envelope, exit codes, messages.

mod agent_skills;
mod audit;
mod bad_input;
mod bad_skills;
mod commands;
mod concurrency;
mod denials;
mod envelope;
mod examples;
mod isolation;
mod lookup;
mod params;
mod policy;

use skillcell_tests::{Cell, Level, User};

fn cell() -> Cell {
    Cell::new(Level::Sandbox, User::Caller)
}

/// A Python skill in one file.
fn python_skill(cell: &Cell, manifest: &str, code: &str) -> std::path::PathBuf {
    let manifest = format!("name: subject\nversion: 1.2.3\n{manifest}");
    cell.bundle(
        "subject",
        &[("manifest.yaml", &manifest), ("skill.py", code)],
    )
}

/// A skill whose `execute` has this body.
fn execute(cell: &Cell, body: &str) -> std::path::PathBuf {
    let body: String = body
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    python_skill(
        cell,
        "",
        &format!("class Subject:\n    def execute(self, params):\n{body}"),
    )
}
