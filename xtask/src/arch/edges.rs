//! The rule on edges: what a crate is built with is what its row says.

use super::table::Table;
use crate::workspace::Package;

/// One line per violation, in the order of the packages.
pub(super) fn check(table: &Table, packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    for package in packages.iter().filter(|package| package.product) {
        if !table.has(&package.name) {
            violations.push(format!("{} has no row in the table", package.name));
            continue;
        }
        for used in &package.uses {
            let ours = packages.iter().any(|other| &other.name == used);
            if ours && !table.allows(&package.name, used) {
                violations.push(format!(
                    "{} uses {used}, which its row does not have",
                    package.name
                ));
            }
        }
    }
    for name in table.crates() {
        if !packages.iter().any(|p| p.product && p.name == name) {
            violations.push(format!("{name} has a row but is not under crates/"));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const PAGE: &str = "\
| crate | one responsibility | may use |
|---|---|---|
| `skillcell-core` | words | – |
| `skillcell-plan` | plans | core |
";

    fn package(name: &str, product: bool, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            dir: PathBuf::new(),
            product,
            uses: uses.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn violations(packages: &[Package]) -> Vec<String> {
        check(&Table::parse(PAGE).unwrap(), packages)
    }

    #[test]
    fn documented_edges_and_foreign_crates_pass() {
        let packages = [
            package("skillcell-core", true, &["serde"]),
            package("skillcell-plan", true, &["skillcell-core", "serde"]),
            package("xtask", false, &["skillcell-plan"]),
        ];
        assert_eq!(violations(&packages), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_the_table_lacks_fails() {
        let packages = [
            package("skillcell-core", true, &["skillcell-plan"]),
            package("skillcell-plan", true, &[]),
        ];
        assert_eq!(
            violations(&packages),
            ["skillcell-core uses skillcell-plan, which its row does not have"]
        );
    }

    #[test]
    fn a_product_crate_that_uses_a_tool_fails() {
        let packages = [
            package("skillcell-core", true, &["xtask"]),
            package("skillcell-plan", true, &[]),
            package("xtask", false, &[]),
        ];
        assert_eq!(violations(&packages).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_fail() {
        let packages = [
            package("skillcell-core", true, &[]),
            package("skillcell-new", true, &[]),
        ];
        assert_eq!(
            violations(&packages),
            [
                "skillcell-new has no row in the table",
                "skillcell-plan has a row but is not under crates/"
            ]
        );
    }
}
