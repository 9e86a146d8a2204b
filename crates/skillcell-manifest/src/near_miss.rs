//! Keys that look like a key that matters, but aren't it.
//!
//! Manifests may carry any key, so a policy under `security-policy:` would be ignored, and its
//! author would believe that it holds. Ignoring it is safe (nothing is granted), but it should be
//! said.

use crate::error::{Warning, clean};
use crate::yaml::Entry;

/// What other words people use for the keys that matter.
const SYNONYMS: [(&str, &str); 15] = [
    ("policy", "security_policy"),
    ("security", "security_policy"),
    ("permissions", "security_policy"),
    ("network", "security_policy"),
    ("egress", "security_policy"),
    ("secrets", "security_policy"),
    ("sandbox", "execution"),
    ("isolation", "execution"),
    ("env", "env_vars"),
    ("environment", "env_vars"),
    ("environmentvariables", "env_vars"),
    ("dependencies", "requirements"),
    ("deps", "requirements"),
    ("params", "parameters"),
    ("inputs", "parameters"),
];

/// Keys looked at: a file of keys must not buy hours of comparing.
const MAX_KEYS: usize = 1000;

/// A warning for each key that isn't `known` but is nearly one of `matters`.
pub(crate) fn near_misses(entries: &[Entry], matters: &[&str], known: &[&str]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for entry in entries.iter().take(MAX_KEYS) {
        let key = entry.key.as_str();
        if matters.contains(&key) || known.contains(&key) {
            continue;
        }
        if let Some(meant) = meant(key, matters) {
            warnings.push(Warning {
                message: format!(
                    "unknown key `{}` is ignored; did you mean `{meant}`?",
                    clean(key)
                ),
                location: Some(entry.key_location),
            });
        }
    }
    warnings
}

fn meant<'a>(key: &str, matters: &[&'a str]) -> Option<&'a str> {
    if key.len() > 64 {
        return None;
    }
    let folded = fold(key);
    let synonym = SYNONYMS
        .iter()
        .find(|(word, _)| *word == folded)
        .map(|(_, name)| *name);
    matters.iter().copied().find(|name| {
        let target = fold(name);
        let allowed = if target.len() >= 8 { 2 } else { 1 };
        synonym == Some(name) || distance(&folded, &target) <= allowed
    })
}

/// Without case, `_`, `-` and spaces: `SecurityPolicy` and `security-policy` are one word.
fn fold(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' ' | '.'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Levenshtein distance, for suggestions.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATTERS: [&str; 5] = [
        "security_policy",
        "env_vars",
        "execution",
        "requirements",
        "parameters",
    ];

    #[test]
    fn other_spellings_of_a_key_that_matters_are_noticed() {
        for (key, want) in [
            ("security-policy", "security_policy"),
            ("securityPolicy", "security_policy"),
            ("SecurityPolicy", "security_policy"),
            ("securty_policy", "security_policy"),
            ("env-vars", "env_vars"),
            ("envvars", "env_vars"),
            ("env_var", "env_vars"),
            ("executon", "execution"),
            ("Requirements", "requirements"),
            ("dependencies", "requirements"),
            ("permissions", "security_policy"),
        ] {
            assert_eq!(meant(key, &MATTERS), Some(want), "{key}");
        }
    }

    #[test]
    fn other_keys_are_left_alone() {
        for key in [
            "tags",
            "constitution",
            "presentation",
            "issuer",
            "outputs",
            "tier",
            "x",
            "é",
        ] {
            assert_eq!(meant(key, &MATTERS), None, "{key}");
        }
        assert_eq!(meant(&"x".repeat(100_000), &MATTERS), None);
    }
}
