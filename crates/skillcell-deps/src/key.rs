//! The name of an environment: everything that decides what an install gives.

use crate::{DepsRequest, normalise};
use sha2::{Digest as _, Sha256};
use skillcell_core::Digest;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Changes when the layout or the way of installing does.
pub(crate) const FORMAT: u32 = 1;

/// The parts of a key, as they are written beside the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) requirements: Vec<String>,
    pub(crate) python: String,
    pub(crate) machine: &'static str,
    pub(crate) libc: &'static str,
    pub(crate) source_builds: bool,
}

impl Key {
    pub(crate) fn of(request: &DepsRequest<'_>) -> Key {
        let (major, minor) = request.python.version;
        Key {
            requirements: normalise::set(request.requirements),
            python: format!("{major}.{minor}"),
            machine: std::env::consts::ARCH,
            libc: libc_of(&request.python.executable),
            source_builds: request.source_builds,
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        let mut field = |text: &str| {
            // With its length before it, so that no two lists of fields read alike.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        field(&FORMAT.to_string());
        field(&self.python);
        field(self.machine);
        field(self.libc);
        field(if self.source_builds {
            "source builds"
        } else {
            "wheels only"
        });
        for requirement in &self.requirements {
            field(requirement);
        }
        Digest::sha256(&hash.finalize().into())
    }
}

/// By the loader that the interpreter names near the start of its file: wheels differ by it.
fn libc_of(executable: &Path) -> &'static str {
    let mut head = Vec::with_capacity(4096);
    let read = File::open(executable).and_then(|file| file.take(4096).read_to_end(&mut head));
    let musl = read.is_ok() && head.windows(8).any(|w| w == b"ld-musl-");
    if musl { "musl" } else { "glibc" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(requirements: &[&str]) -> Key {
        let requirements: Vec<String> = requirements.iter().map(|r| (*r).to_owned()).collect();
        Key {
            requirements: normalise::set(&requirements),
            python: "3.11".into(),
            machine: "x86_64",
            libc: "glibc",
            source_builds: false,
        }
    }

    #[test]
    fn order_and_spelling_do_not_change_the_key() {
        assert_eq!(
            key(&["b>=1", "A"]).digest(),
            key(&["a", "B >= 1", "a"]).digest()
        );
    }

    #[test]
    fn everything_that_decides_the_install_changes_the_key() {
        let base = key(&["a"]);
        let others = [
            key(&["a==1"]),
            key(&["a", "b"]),
            key(&["ab"]),
            Key {
                python: "3.12".into(),
                ..base.clone()
            },
            Key {
                machine: "aarch64",
                ..base.clone()
            },
            Key {
                libc: "musl",
                ..base.clone()
            },
            Key {
                source_builds: true,
                ..base.clone()
            },
        ];
        for other in others {
            assert_ne!(base.digest(), other.digest(), "{:?}", other.requirements);
        }
    }

    #[test]
    fn a_missing_interpreter_counts_as_the_common_libc() {
        assert_eq!(libc_of(Path::new("/nonexistent/python")), "glibc");
    }
}
