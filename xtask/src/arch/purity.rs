//! The rule on purity: the deciding crates decide, and touch nothing.
//!
//! A plan that depends on a file or a clock can't be explained, hashed or tested by its inputs.

use std::fs;

use anyhow::{Context as _, Result};

use super::sources::{code_lines, rust_files};
use crate::workspace::Workspace;

const PURE: [&str; 4] = [
    "skillcell-core",
    "skillcell-manifest",
    "skillcell-policy",
    "skillcell-plan",
];

/// Crates that are of use only for I/O, randomness or an async runtime.
const FOREIGN: [&str; 6] = [
    "async-std",
    "getrandom",
    "libc",
    "rustix",
    "tempfile",
    "tokio",
];

/// Names of the standard library that reach outside of the process, or at its surroundings.
const REACHES: [&str; 9] = [
    "std::env",
    "std::fs",
    "std::os",
    "std::process",
    "std::thread",
    "SystemTime",
    "TcpStream",
    "ToSocketAddrs",
    "UdpSocket",
];

/// One line per reach out of a pure crate.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in &workspace.packages {
        if !PURE.contains(&package.name.as_str()) {
            continue;
        }
        for used in &package.uses {
            if FOREIGN.contains(&used.as_str()) {
                violations.push(format!("{} is pure but uses {used}", package.name));
            }
        }
        for file in rust_files(&package.dir.join("src"))? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("could not read {}", file.display()))?;
            let name = file.strip_prefix(&workspace.root).unwrap_or(&file);
            for (line, reach) in reaches(&text) {
                violations.push(format!(
                    "{}:{line} names {reach}, but {} is pure",
                    name.display(),
                    package.name
                ));
            }
        }
    }
    Ok(violations)
}

/// The reaches in the code before the file's tests, which may do as they like.
fn reaches(source: &str) -> Vec<(usize, &'static str)> {
    code_lines(source)
        .take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"))
        .filter_map(|(number, line)| {
            let reach = REACHES.iter().find(|reach| line.contains(**reach))?;
            Some((number, *reach))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaching_for_the_disk_is_found_in_code_and_not_in_comments_or_tests() {
        let source =
            "// std::fs is not used\nuse std::fs;\n#[cfg(test)]\nmod tests { use std::env; }\n";
        assert_eq!(reaches(source), [(2, "std::fs")]);
    }
}
