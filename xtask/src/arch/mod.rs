//! Holds the crates to the table in `docs/architecture/README.md`.
//!
//! A layer that is only drawn erodes one convenient import at a time. The table that people read
//! is therefore the table that is enforced.

mod edges;
mod purity;
mod sources;
mod table;
mod unsafety;

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;
use table::Table;

const PAGE: &str = "docs/architecture/README.md";

/// Runs every rule on this workspace; the error lists all violations.
pub(crate) fn check_workspace() -> Result<()> {
    let workspace = Workspace::load()?;
    let page = fs::read_to_string(workspace.root.join(PAGE))
        .with_context(|| format!("could not read {PAGE}"))?;
    let table = Table::parse(&page).with_context(|| format!("in the crate table of {PAGE}"))?;
    let mut violations = edges::check(&table, &workspace.packages);
    violations.extend(unsafety::check(&workspace)?);
    violations.extend(purity::check(&workspace)?);
    if violations.is_empty() {
        return Ok(());
    }
    bail!(
        "the crates are not as {PAGE} says:\n  - {}",
        violations.join("\n  - ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_as_the_architecture_page_says() {
        check_workspace().unwrap();
    }

    /// The proof that the test above can fail: the real crates against a doctored page.
    #[test]
    fn a_page_without_one_real_edge_fails_the_real_workspace() {
        let workspace = Workspace::load().unwrap();
        let page = fs::read_to_string(workspace.root.join(PAGE)).unwrap();
        let row = page
            .lines()
            .find(|line| line.starts_with("| `skillcell-backend` |"))
            .unwrap();
        let (kept, _) = row.trim_end_matches([' ', '|']).rsplit_once('|').unwrap();
        let doctored = page.replace(row, &format!("{kept}| core |"));

        let violations = edges::check(&Table::parse(&doctored).unwrap(), &workspace.packages);

        assert!(
            violations
                .iter()
                .any(|v| v.contains("skillcell-backend uses skillcell-linux")),
            "{violations:?}"
        );
    }
}
