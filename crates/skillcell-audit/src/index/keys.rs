//! One made-up word per thing that an event can be found by. Words of hostile origin are hashed, so
//! none can pass for another one's.

use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write;

/// What is counted per call, and asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Facet {
    Host = 1,
    Path = 2,
    Syscall = 3,
    Reason = 4,
    Kind = 5,
    /// Reasons of what the call was denied, with how often.
    Denial = 6,
    /// System calls of the summary, by class.
    Class = 7,
}

/// Folders above a path that it can be found by.
const MAX_DEPTH: usize = 32;
/// Values whose keys are remembered while indexing.
const MAX_KNOWN: usize = 100_000;

/// The key of a value that is asked for.
pub(super) fn key(facet: Facet, value: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update([facet as u8]);
    hasher.update(value.as_bytes());
    let hash: [u8; 32] = hasher.finalize().into();
    let mut key = String::from("k");
    for byte in &hash[..8] {
        // Writing to a string can't fail.
        write!(key, "{byte:02x}").unwrap_or(());
    }
    key
}

/// The key of a call.
pub(super) fn of_call(id: i64) -> String {
    format!("c{id}")
}

/// A host as it is compared.
pub(super) fn host(text: &str) -> String {
    text.trim_end_matches('.').to_lowercase()
}

/// A path as it is compared: `/etc/` is `/etc`.
pub(super) fn path(text: &str) -> &str {
    match text.trim_end_matches('/') {
        "" if text.starts_with('/') => "/",
        trimmed => trimmed,
    }
}

/// Makes keys, and remembers them.
#[derive(Default)]
pub(super) struct Keys {
    known: HashMap<(Facet, String), String>,
}

impl Keys {
    /// Adds every key that the value is found by: a path by the folders above it, a host by
    /// wildcards that cover it.
    pub(super) fn add(&mut self, out: &mut String, facet: Facet, value: &str) {
        out.push(' ');
        if let Some(keys) = self.known.get(&(facet, value.to_owned())) {
            out.push_str(keys);
            return;
        }
        let mut keys = key(facet, value);
        let mut more = |value: &str| {
            keys.push(' ');
            keys.push_str(&key(facet, value));
        };
        match facet {
            Facet::Host => {
                for (at, _) in value.match_indices('.').take(MAX_DEPTH) {
                    more(&format!("*{}", &value[at..]));
                }
            }
            Facet::Path if value.starts_with('/') && value != "/" => {
                more("/");
                for (at, _) in value.match_indices('/').skip(1).take(MAX_DEPTH) {
                    more(&value[..at]);
                }
            }
            _ => {}
        }
        out.push_str(&keys);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert((facet, value.to_owned()), keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_by_its_folders_and_a_host_by_its_wildcards() {
        let mut keys = Keys::default();
        let has = |keys: &mut Keys, facet, value: &str, asked: &str| {
            let mut out = String::new();
            keys.add(&mut out, facet, value);
            let mut again = String::new();
            keys.add(&mut again, facet, value);
            assert_eq!(out, again);
            out.split(' ').any(|k| k == key(facet, asked))
        };
        for folder in ["/", "/etc", "/etc/ssl", "/etc/ssl/a.pem"] {
            assert!(has(&mut keys, Facet::Path, "/etc/ssl/a.pem", folder));
        }
        assert!(!has(&mut keys, Facet::Path, "/etcetera", "/etc"));
        for name in ["a.b.example.com", "*.b.example.com", "*.example.com"] {
            assert!(has(&mut keys, Facet::Host, "a.b.example.com", name));
        }
        assert!(!has(&mut keys, Facet::Host, "example.com", "*.example.com"));
        assert_eq!(path("/etc//"), "/etc");
        assert_eq!(path("//"), "/");
    }
}
