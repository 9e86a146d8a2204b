//! Skillcell itself: the release binary on the hello example.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::peer::{Expect, Peer, first_line};
use crate::workspace::Places;

pub(super) const NAME: &str = "skillcell";
const SKILL: &str = "examples/skills/hello";

/// Builds the release binary and returns where it is.
pub(super) fn build(places: &Places) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--package", "skillcell-cli"])
        .current_dir(&places.root)
        .status()
        .context("could not start cargo")?;
    ensure!(status.success(), "the release build failed");
    Ok(places.target.join("release/skillcell"))
}

/// Not probed into absence: a benchmark of Skillcell in which Skillcell fails is an error.
pub(super) fn peer(places: &Places, binary: &Path, python: &Path) -> Peer {
    let skill = places.root.join(SKILL);
    let words = [
        "run",
        &skill.display().to_string(),
        "--params",
        r#"{"name":"bench"}"#,
        "--python",
        &python.display().to_string(),
    ];
    Peer {
        name: NAME,
        about: first_line(binary, &["--version"]),
        program: binary.to_path_buf(),
        args: words.map(str::to_owned).to_vec(),
        expect: Expect::Json(json!({"greeting": "Hello, bench!"})),
    }
}
