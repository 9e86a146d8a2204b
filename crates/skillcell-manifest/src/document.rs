//! A manifest as its author wrote it, for those who show it or hand it to a model.
//!
//! Nothing is decided by this: what we act on is [`crate::Manifest`].

use crate::agent_skill::split;
use crate::error::ManifestError;
use crate::yaml::{self, Entry};
use serde_json::{Map, Value};

/// Every key of a `manifest.yaml`. A value with a number that JSON lacks (`.inf`) is left out.
pub fn skillware_document(text: &str) -> Result<Map<String, Value>, ManifestError> {
    Ok(to_map(yaml::parse(text)?.entries("manifest")?))
}

/// Every key of the frontmatter of a `SKILL.md`, and the text after it.
pub fn agent_skill_document(text: &str) -> Result<(Map<String, Value>, &str), ManifestError> {
    let (frontmatter, body) = split(text)?;
    let root = yaml::parse_from_line(frontmatter, 2)?;
    Ok((to_map(root.entries("frontmatter")?), body))
}

fn to_map(entries: &[Entry]) -> Map<String, Value> {
    let values = entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), entry.value.to_json().ok()?)));
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_key_is_kept_in_its_order() {
        let text = "name: a/b\nmood: {good: true}\nversion: 1\nbad: [.inf]\n";
        let document = skillware_document(text).unwrap();
        let want = json!({"name": "a/b", "mood": {"good": true}, "version": 1});
        assert_eq!(Value::Object(document), want);
    }

    #[test]
    fn the_body_of_an_agent_skill_comes_after_its_frontmatter() {
        let (document, body) =
            agent_skill_document("---\nname: a\n---\n# Title\n---\ntext").unwrap();
        assert_eq!(Value::Object(document), json!({"name": "a"}));
        assert_eq!(body, "# Title\n---\ntext");
    }
}
