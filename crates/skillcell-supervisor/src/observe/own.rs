//! Folders whose files a skill may read without anybody wanting to know: its own code, its packages,
//! its interpreter and the system's libraries, and its scratch.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFolders {
    /// What the bundle can't have put a link into.
    given: Vec<Vec<u8>>,
    /// The bundle, in which any file may be a link that leads elsewhere.
    bundle: Vec<Vec<u8>>,
}

/// What a name says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Own,
    /// The skill's own if it is no link.
    Bundle,
    Elsewhere,
}

impl OwnFolders {
    /// As the skill sees them.
    pub(crate) fn new(
        bundle: impl IntoIterator<Item = PathBuf>,
        given: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let system = [
            "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin",
        ];
        let bytes = |path: PathBuf| path.into_os_string().into_encoded_bytes();
        OwnFolders {
            given: system
                .iter()
                .map(PathBuf::from)
                .chain(given)
                .map(bytes)
                .collect(),
            bundle: bundle.into_iter().map(bytes).collect(),
        }
    }

    /// By name. A name that goes up again is nobody's own.
    pub(super) fn place(&self, path: &[u8]) -> Place {
        let inside = |folder: &Vec<u8>| {
            path.strip_prefix(folder.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        if path.windows(3).any(|w| w == b"/..") {
            Place::Elsewhere
        } else if self.bundle.iter().any(inside) {
            // First: at the process level a bundle may lie below what is given.
            Place::Bundle
        } else if self.given.iter().any(inside) {
            Place::Own
        } else {
            Place::Elsewhere
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_those_below_own_folders() {
        let own = OwnFolders::new(["/skill", "/usr/share/skill"].map(PathBuf::from), []);
        for path in ["/usr/lib/x.so", "/lib64/ld.so"] {
            assert_eq!(own.place(path.as_bytes()), Place::Own, "{path}");
        }
        for path in ["/skill", "/skill/a.py", "/usr/share/skill/a.py"] {
            assert_eq!(own.place(path.as_bytes()), Place::Bundle, "{path}");
        }
        for path in [
            "/skills/a",
            "/etc/passwd",
            "/skill/../etc/passwd",
            "/proc/self/maps",
            "",
        ] {
            assert_eq!(own.place(path.as_bytes()), Place::Elsewhere, "{path}");
        }
    }
}
