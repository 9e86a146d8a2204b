//! Which sections of a file speak about which skill.
//!
//! The skill's own word counts only where it narrows. Its tier is the operator's to give, by digest
//! or by the folder it lies in; its category comes from its manifest, so a category section is no
//! wall against a skill that lies about its name: what must hold for all belongs into `defaults`
//! or a tier.

use crate::roots::Root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skillcell_core::{Digest, SkillId};
use std::fmt;
use std::path::Path;

/// How far the operator trusts where a skill came from. Without an assignment: `external`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    #[default]
    External,
    Verified,
    Core,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::External => "external",
            Tier::Verified => "verified",
            Tier::Core => "core",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The skill that a policy is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub id: &'a SkillId,
    /// As the manifest claims it.
    pub category: Option<&'a str>,
    pub digest: Option<&'a Digest>,
    /// Where the bundle lies, symlinks resolved.
    pub path: Option<&'a Path>,
}

/// Gives a tier to bundles: to exact contents, or to whatever lies in folders that only the
/// operator can write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    pub tier: Tier,
    /// Bundle digests, as `skillcell explain` prints them.
    #[serde(default)]
    pub digests: Vec<DigestText>,
    /// Folders; every bundle in or under one is meant.
    #[serde(default)]
    pub paths: Vec<Root>,
}

impl Assignment {
    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        let by_digest = subject
            .digest
            .is_some_and(|digest| self.digests.iter().any(|d| d.0 == digest.as_str()));
        let by_path = subject
            .path
            .is_some_and(|path| self.paths.iter().any(|root| is_under(path, root.path())));
        by_digest || by_path
    }
}

/// Also false for a path that is not resolved: `..` in it could lead anywhere.
fn is_under(path: &Path, root: &Path) -> bool {
    let resolved = path
        .components()
        .all(|c| !matches!(c, std::path::Component::ParentDir));
    resolved && path.starts_with(root)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
pub struct DigestText(String);

impl TryFrom<String> for DigestText {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match Digest::parse(&text) {
            Some(_) => Ok(DigestText(text)),
            None => Err(format!(
                "`{}` is not a digest: write sha256: and 64 lower-case hex digits",
                text.chars().take(100).collect::<String>()
            )),
        }
    }
}

impl From<DigestText> for String {
    fn from(digest: DigestText) -> String {
        digest.0
    }
}

/// `category/name` with `*` for any run of characters, `/` included. Upper and lower case are the
/// same here: a skill must not escape `finance/*` by calling itself `Finance/…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct CategoryPattern(String);

impl CategoryPattern {
    const MAX: usize = 256;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn matches(&self, subject: &Subject<'_>) -> bool {
        let id = subject.id.as_str();
        let name = id.rsplit('/').next().unwrap_or(id);
        // Both what the id says and what the category says: more matches only narrow more.
        self.matches_text(id)
            || subject
                .category
                .is_some_and(|category| self.matches_text(&format!("{}/{name}", category.trim())))
    }

    fn matches_text(&self, text: &str) -> bool {
        let pattern: Vec<char> = self.0.to_lowercase().chars().collect();
        let text: Vec<char> = text.to_lowercase().chars().collect();
        wildcard_match(&pattern, &text)
    }
}

impl TryFrom<String> for CategoryPattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let known = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '*');
        if text.is_empty() || text.len() > Self::MAX || !text.chars().all(known) {
            return Err(format!(
                "`{}` is not a pattern over category/name, such as finance/*",
                text.chars().take(100).collect::<String>()
            ));
        }
        Ok(CategoryPattern(text))
    }
}

impl From<CategoryPattern> for String {
    fn from(pattern: CategoryPattern) -> String {
        pattern.0
    }
}

/// Greedy with one step back per star: never worse than the product of both lengths.
fn wildcard_match(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            p = after + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, text: &str) -> bool {
        let pattern = CategoryPattern::try_from(pattern.to_owned()).expect("a pattern");
        pattern.matches_text(text)
    }

    #[test]
    fn stars_match_any_run_and_case_is_ignored() {
        assert!(hit("finance/*", "finance/wallet"));
        assert!(hit("finance/*", "FINANCE/Wallet"));
        assert!(hit("*", "a/b"));
        assert!(hit("*/w*t", "finance/wallet"));
        assert!(!hit("finance/*", "financial/x"));
        assert!(!hit("finance", "finance/x"));
        assert!(!hit("a*a", "a"));
    }

    #[test]
    fn a_skill_is_matched_by_its_id_and_by_its_category() {
        let id = SkillId::parse("misc/wallet").expect("an id");
        let subject = Subject {
            id: &id,
            category: Some("finance"),
            digest: None,
            path: None,
        };
        for pattern in ["finance/*", "misc/*", "*/wallet"] {
            let pattern = CategoryPattern::try_from(pattern.to_owned()).expect("a pattern");
            assert!(pattern.matches(&subject), "{}", pattern.as_str());
        }
    }

    #[test]
    fn a_sibling_folder_with_the_same_prefix_is_not_under_a_root() {
        assert!(is_under(
            Path::new("/opt/skills/a"),
            Path::new("/opt/skills")
        ));
        assert!(!is_under(
            Path::new("/opt/skills-evil/a"),
            Path::new("/opt/skills")
        ));
        assert!(!is_under(
            Path::new("/opt/skills/../x"),
            Path::new("/opt/skills")
        ));
    }
}
