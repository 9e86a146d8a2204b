//! The command line from outside: exit code, stdout and stderr.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod audit;
mod check;
mod explain;
mod help;
mod policy;
#[path = "../../../skillcell-audit/tests/samples/mod.rs"]
mod samples;
mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The binary, away from the caller's own settings and colours.
fn skillcell(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_skillcell"))
        .args(args)
        .env_remove("SKILLCELL_SKILL_PATH")
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .env("SKILLCELL_CACHE_DIR", home.path().join("cache"))
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// Exit code, stdout and stderr in one text, with `dir` as `DIR`.
fn whole(output: &Output, dir: &Path) -> String {
    let text = format!(
        "exit code: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    text.replace(dir.to_str().unwrap(), "DIR")
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/skills")
        .join(name)
}

/// A skill with this manifest.
fn skill(dir: &Path, name: &str, manifest: &str) -> String {
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    std::fs::write(
        folder.join("skill.py"),
        "class S:\n    def execute(self, params):\n        return {}\n",
    )
    .unwrap();
    folder.to_str().unwrap().to_owned()
}
