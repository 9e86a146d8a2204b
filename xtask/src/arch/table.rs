//! Reads the crate table of the architecture page.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

const HEADER: [&str; 3] = ["crate", "one responsibility", "may use"];
const PREFIX: &str = "skillcell-";

/// Which crate may use which, by full crate name.
#[derive(Debug)]
pub(super) struct Table {
    rows: BTreeMap<String, BTreeSet<String>>,
}

impl Table {
    /// Parses the one table whose header is `crate | one responsibility | may use`.
    pub(super) fn parse(page: &str) -> Result<Self> {
        let mut lines = page
            .lines()
            .map(cells)
            .skip_while(|line| line.as_deref() != Some(HEADER.as_slice()));
        ensure!(lines.next().is_some(), "no table headed {HEADER:?}");
        let rows: Vec<Vec<&str>> = lines.skip(1).map_while(|line| line).collect();

        let mut names: Vec<String> = Vec::new();
        for row in &rows {
            ensure!(row.len() == 3, "a row without three cells: {row:?}");
            let name = row[0].trim_matches('`').to_owned();
            ensure!(!names.contains(&name), "{name} has two rows");
            names.push(name);
        }
        ensure!(!names.is_empty(), "the table has no rows");

        let mut table = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let uses = allowed(row[2], &names[..index], &names)?;
            table.insert(names[index].clone(), uses);
        }
        Ok(Self { rows: table })
    }

    pub(super) fn crates(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.rows.contains_key(name)
    }

    pub(super) fn allows(&self, from: &str, to: &str) -> bool {
        self.rows.get(from).is_some_and(|uses| uses.contains(to))
    }
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn allowed(cell: &str, above: &[String], all: &[String]) -> Result<BTreeSet<String>> {
    match cell {
        "–" | "-" => return Ok(BTreeSet::new()),
        "all above" => return Ok(above.iter().cloned().collect()),
        _ => {}
    }
    cell.split(',')
        .map(|word| {
            let short = word.trim().trim_matches('`');
            let full = format!("{PREFIX}{}", short.trim_start_matches(PREFIX));
            if all.contains(&full) {
                Ok(full)
            } else {
                bail!("`{short}` in `{cell}` is not a crate of the table")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
text
| crate | one responsibility | may use |
|---|---|---|
| `skillcell-core` | words | – |
| `skillcell-plan` | plans | core |
| `skillcell-cli` | commands | all above |

| another | table |
";

    #[test]
    fn rows_allow_what_they_name_and_nothing_else() {
        let table = Table::parse(PAGE).unwrap();
        assert!(table.allows("skillcell-plan", "skillcell-core"));
        assert!(table.allows("skillcell-cli", "skillcell-plan"));
        assert!(!table.allows("skillcell-core", "skillcell-plan"));
        assert!(!table.allows("skillcell-plan", "skillcell-cli"));
        assert_eq!(table.crates().count(), 3);
    }

    #[test]
    fn a_misspelt_crate_is_an_error_not_an_ignored_word() {
        let page = PAGE.replace("| core |", "| coer |");
        let error = Table::parse(&page).unwrap_err().to_string();
        assert!(error.contains("`coer`"), "{error}");
    }

    #[test]
    fn a_page_without_the_table_is_an_error() {
        assert!(Table::parse("# Architecture\n").is_err());
        assert!(Table::parse("| crate | one responsibility | may use |\n|---|---|---|\n").is_err());
    }

    #[test]
    fn a_crate_with_two_rows_is_an_error() {
        let page = PAGE.replace("`skillcell-plan`", "`skillcell-core`");
        assert!(Table::parse(&page).is_err());
    }
}
