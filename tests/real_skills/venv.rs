//! The virtualenv with `skillware` and the requirements of its skills.

pub use skillcell_tests::venv;
use skillcell_tests::{Call, Cell, Child, Level, User};
use std::path::{Path, PathBuf};

/// The folder with the skills that `skillware` brings.
pub fn skills() -> PathBuf {
    let lib = venv().join("lib");
    let found = std::fs::read_dir(&lib)
        .unwrap_or_else(|e| panic!("{}: {e}", lib.display()))
        .flatten()
        .map(|entry| entry.path().join("site-packages/skills"))
        .find(|path| path.is_dir());
    found.unwrap_or_else(|| {
        panic!(
            "{} has no skillware: pip install skillware==0.6.0",
            lib.display()
        )
    })
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("real_skills")
        .join(name)
}

/// Python of the virtualenv, without network, like the cell that it is compared with.
pub fn offline_python(
    cell: &Cell,
    env: &[(String, String)],
    arguments: &[&Path],
    stdin: &str,
) -> skillcell_tests::Finished {
    let mut command = cell.command("unshare");
    command
        .args(["--user", "--map-root-user", "--net"])
        .arg(venv().join("bin/python"))
        .args(arguments);
    command
        .envs(env.iter().cloned())
        .env("TMPDIR", cell.path("work"));
    Child::spawn(command, Some(stdin.as_bytes())).finish()
}

pub fn cell() -> Cell {
    Cell::new(Level::Sandbox, User::Caller)
}

/// `skillcell run ID` with the virtualenv as its dependencies.
pub fn call<'a>(cell: &'a Cell, id: &str) -> Call<'a> {
    cell.call(id)
        .host_env("SKILLCELL_SKILL_PATH", skills())
        .flag("--deps")
        .flag(venv())
}
