//! The Rust files of a package.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Every `.rs` file under `dir`, build output aside, in a stable order.
pub(super) fn rust_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let entries =
            fs::read_dir(&dir).with_context(|| format!("could not list {}", dir.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("could not list {}", dir.display()))?;
            let path = entry.path();
            let kind = entry
                .file_type()
                .with_context(|| format!("could not stat {}", path.display()))?;
            if kind.is_dir() && entry.file_name() != "target" {
                pending.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The lines of code with their numbers; comments are prose and may name anything.
pub(super) fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or(line)))
        .filter(|(_, line)| !line.trim().is_empty())
}
