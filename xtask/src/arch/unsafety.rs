//! The rule on `unsafe`: it has one address.
//!
//! The compiler does the finding: the workspace denies the lint. What is left to check is that
//! nobody switched the lint off, in a manifest or in a source file.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::sources::{code_lines, rust_files};
use crate::workspace::Workspace;

/// The only crate that may hold `unsafe`.
const ADDRESS: &str = "skillcell-linux";

/// Split so that this file doesn't trip over itself.
const LINT: &str = concat!("unsafe", "_code");

/// One line per way in which a member escapes the lint.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    if !workspace_denies(&read(&workspace.root.join("Cargo.toml"))?)? {
        violations.push(format!("the workspace does not deny {LINT}"));
    }
    for package in &workspace.packages {
        if package.name == ADDRESS {
            continue;
        }
        let lints = Lints::of(&read(&package.dir.join("Cargo.toml"))?)?;
        // Test suites may have lints of their own, where they unwrap all day; the product may not.
        let fine = match lints {
            Lints::Inherited => true,
            Lints::OwnWithDeny => !package.product,
            Lints::Lax => false,
        };
        if !fine {
            violations.push(format!(
                "{} does not inherit the workspace's lints",
                package.name
            ));
        }
        for file in rust_files(&package.dir)? {
            let name = file.strip_prefix(&workspace.root).unwrap_or(&file);
            for line in mentions(&read(&file)?) {
                violations.push(format!(
                    "{}:{line} overrides {LINT}; only {ADDRESS} may",
                    name.display()
                ));
            }
        }
    }
    Ok(violations)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

fn workspace_denies(manifest: &str) -> Result<bool> {
    let manifest: toml::Table = toml::from_str(manifest).context("broken workspace manifest")?;
    let lints = manifest
        .get("workspace")
        .and_then(|table| table.get("lints"));
    Ok(lints.is_some_and(deny))
}

/// What a member's manifest says of lints.
#[derive(Debug, PartialEq)]
enum Lints {
    Inherited,
    OwnWithDeny,
    Lax,
}

impl Lints {
    fn of(manifest: &str) -> Result<Self> {
        let manifest: toml::Table = toml::from_str(manifest).context("broken manifest")?;
        let Some(lints) = manifest.get("lints") else {
            return Ok(Self::Lax);
        };
        let inherited = lints.get("workspace").and_then(toml::Value::as_bool);
        Ok(match inherited {
            Some(true) => Self::Inherited,
            _ if deny(lints) => Self::OwnWithDeny,
            _ => Self::Lax,
        })
    }
}

/// Whether a table of lints denies `unsafe`.
fn deny(lints: &toml::Value) -> bool {
    let level = lints.get("rust").and_then(|rust| rust.get(LINT));
    let level = level.and_then(|level| level.as_str().or_else(|| level.get("level")?.as_str()));
    matches!(level, Some("deny" | "forbid"))
}

/// Where the lint is named at all: there is no honest reason to in any other crate.
fn mentions(source: &str) -> Vec<usize> {
    code_lines(source)
        .filter(|(_, line)| line.contains(LINT))
        .map(|(number, _)| number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_that_only_warns_fails() {
        let manifest = |level: &str| format!("[workspace.lints.rust]\n{LINT} = \"{level}\"\n");
        assert!(workspace_denies(&manifest("deny")).unwrap());
        assert!(workspace_denies(&manifest("forbid")).unwrap());
        assert!(!workspace_denies(&manifest("warn")).unwrap());
        assert!(!workspace_denies("[workspace]\n").unwrap());
    }

    #[test]
    fn own_lints_and_no_lints_are_told_from_inherited_ones() {
        let own = |level: &str| format!("[lints.rust]\n{LINT} = \"{level}\"\n");
        let lints = |manifest: &str| Lints::of(manifest).unwrap();
        assert_eq!(lints("[lints]\nworkspace = true\n"), Lints::Inherited);
        assert_eq!(lints(&own("deny")), Lints::OwnWithDeny);
        assert_eq!(lints(&own("allow")), Lints::Lax);
        assert_eq!(lints("[package]\nname = \"x\"\n"), Lints::Lax);
    }

    #[test]
    fn an_override_is_found_in_every_spelling_and_in_code_only() {
        let source = format!(
            "// {LINT} is denied\n#![allow({LINT})]\nfn f() {{}}\n#[cfg_attr(x, expect({LINT}))]\n"
        );
        assert_eq!(mentions(&source), [2, 4]);
    }
}
