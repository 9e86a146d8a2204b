//! Folders whose files a skill may read without anybody wanting to know: its own code, its packages,
//! its interpreter and the system's libraries, and its scratch.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFolders(Vec<Vec<u8>>);

impl OwnFolders {
    /// As the skill sees them.
    pub(crate) fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let system = [
            "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin",
        ];
        OwnFolders(
            system
                .iter()
                .map(PathBuf::from)
                .chain(folders)
                .map(|path| path.into_os_string().into_encoded_bytes())
                .collect(),
        )
    }

    /// By name. A name that goes up again is nobody's own.
    pub(crate) fn contain(&self, path: &[u8]) -> bool {
        let inside = |folder: &Vec<u8>| {
            path.strip_prefix(folder.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        self.0.iter().any(inside) && !path.windows(3).any(|w| w == b"/..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_those_below_own_folders() {
        let own = OwnFolders::new([PathBuf::from("/skill")]);
        for path in ["/skill", "/skill/a.py", "/usr/lib/x.so", "/lib64/ld.so"] {
            assert!(own.contain(path.as_bytes()), "{path}");
        }
        for path in [
            "/skills/a",
            "/etc/passwd",
            "/skill/../etc/passwd",
            "/proc/self/maps",
            "",
        ] {
            assert!(!own.contain(path.as_bytes()), "{path}");
        }
    }
}
