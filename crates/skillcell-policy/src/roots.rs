//! Folders of the host, compared part by part.
//!
//! `/data` must never match `/database`: containment is always by whole path components, and a root
//! with `..` in it doesn't exist as a value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// An absolute path of the host and everything under it.
///
/// Paths that are checked against roots have their symlinks resolved already, so a root that is
/// itself a symlink permits nothing; write where it leads.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^/[^*]*$"))]
pub struct Root(PathBuf);

impl Root {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for Root {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let shown: String = text.chars().take(200).collect();
        if text.contains('*') {
            return Err(format!(
                "`{shown}` has a `*`: write the folder alone, everything under it is meant"
            ));
        }
        let path = Path::new(&text);
        let plain = path
            .components()
            .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
        if !path.is_absolute() || !plain || text.contains('\0') {
            return Err(format!(
                "`{shown}` is not an absolute path without `..`, such as /srv/data"
            ));
        }
        Ok(Root(path.components().collect()))
    }
}

impl From<Root> for String {
    fn from(root: Root) -> String {
        // Made from a String, so nothing is lost.
        root.0.to_string_lossy().into_owned()
    }
}

/// What is under a root of both lists.
pub(crate) fn meet(a: &[PathBuf], b: &[PathBuf]) -> Vec<PathBuf> {
    let mut both: Vec<PathBuf> = Vec::new();
    for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
        let narrower = if x.starts_with(y) {
            x
        } else if y.starts_with(x) {
            y
        } else {
            continue;
        };
        if !both.contains(narrower) {
            both.push(narrower.clone());
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn roots_are_absolute_without_parent_steps_or_wildcards() {
        for bad in ["", "data", "~/x", "/a/../b", "/a/**", "/a\0", "./x"] {
            assert!(Root::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
        let root = Root::try_from("/a//b/./c/".to_owned()).expect("absolute");
        assert_eq!(root.path().as_os_str(), "/a/b/c");
    }

    #[test]
    fn roots_meet_by_whole_components() {
        assert_eq!(
            meet(&paths(&["/data"]), &paths(&["/data/x", "/database"])),
            paths(&["/data/x"])
        );
        assert_eq!(meet(&paths(&["/a"]), &[]), paths(&[]));
        assert_eq!(
            meet(&paths(&["/a", "/a/b"]), &paths(&["/a/b"])),
            paths(&["/a/b"])
        );
    }
}
