//! The record outside of its log: exports and pages, held against what their readers expect.

mod collector;
mod export;
mod report;
#[path = "../../crates/skillcell-audit/tests/sample/mod.rs"]
mod sample;

use skillcell_audit::Folder;
use skillcell_tests::{Cell, Child, Finished, Level, Outcome, User};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn cell() -> Cell {
    Cell::new(Level::Sandbox, User::Caller)
}

/// A log beside the cell's own, written by the crate that writes real ones.
fn log(cell: &Cell, write: impl FnOnce(&Folder)) -> PathBuf {
    let path = cell.path("audit");
    write(&Folder::at(&path));
    path
}

/// `skillcell audit COMMAND --log LOG …`
fn audit<S: AsRef<OsStr>>(
    cell: &Cell,
    command: &str,
    log: &Path,
    more: impl IntoIterator<Item = S>,
) -> Outcome {
    let mut arguments = vec!["audit".into(), command.into(), "--log".into(), log.into()];
    arguments.extend(more.into_iter().map(|a| a.as_ref().to_owned()));
    cell.skillcell::<std::ffi::OsString>(arguments)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("audit")
        .join(name)
}

/// A Python of the suite's virtualenv, with what the tests need in it.
fn python(cell: &Cell, name: &str, stdin: &str) -> Finished {
    let mut command = cell.command(skillcell_tests::venv().join("bin/python"));
    command.arg(script(name));
    Child::spawn(command, Some(stdin.as_bytes())).finish()
}
