//! Relative links in Markdown files: their targets must exist.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Directories whose Markdown isn't ours to keep.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// One line per link that leads nowhere.
pub(super) fn dead(root: &Path) -> Result<Vec<String>> {
    let mut dead = Vec::new();
    for page in pages(root)? {
        let text = fs::read_to_string(&page)
            .with_context(|| format!("could not read {}", page.display()))?;
        let dir = page.parent().unwrap_or(root);
        let name = page.strip_prefix(root).unwrap_or(&page).display();
        for (line, target) in links(&text) {
            if !dir.join(target).exists() {
                dead.push(format!("{name}:{line}: {target}"));
            }
        }
    }
    Ok(dead)
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let entries =
            fs::read_dir(&dir).with_context(|| format!("could not list {}", dir.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("could not list {}", dir.display()))?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry
                .file_type()
                .with_context(|| format!("could not stat {}", path.display()))?;
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                pending.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|ext| ext == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The relative targets of inline links outside of code, with their lines, fragments cut off.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, tail)) = after.split_once(')') else {
                break;
            };
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") {
                found.push((index + 1, path));
            }
            rest = tail;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_this_repository_lead_somewhere() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        assert_eq!(dead(root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_dead_link_is_found_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.md"), "x\n[b](b.md) [c](a.md#part)\n").unwrap();
        assert_eq!(dead(dir.path()).unwrap(), ["a.md:2: b.md"]);
    }

    #[test]
    fn web_addresses_fragments_and_code_are_left_alone() {
        let text = "[a](https://x.org) [b](#here)\n```\n[c](no.md)\n```\n[d](yes.md)\n";
        assert_eq!(links(text), [(5, "yes.md")]);
    }
}
