//! What a bundle says about itself, for people and models. Nothing in it is run.

use crate::{Bundle, BundleError, BundleKind};
use serde_json::{Map, Value};
use skillcell_manifest::{Entry, agent_skill_document, skill_classes, skillware_document};
use std::path::Path;

const INSTRUCTIONS: &str = "instructions.md";
const CARD: &str = "card.json";

#[derive(Debug, Default)]
pub struct Description {
    /// The manifest or frontmatter, with every key that its author wrote.
    pub manifest: Map<String, Value>,
    /// How a model is told to use the skill: `instructions.md`, or the text of `SKILL.md`.
    pub instructions: Option<String>,
    /// `card.json`, how the skill is shown in a catalogue.
    pub card: Option<Value>,
    /// Classes in `skill.py` that look like the skill's.
    pub classes: Vec<String>,
    /// Files that are there and can't be used. A call doesn't need them.
    pub problems: Vec<String>,
}

impl Bundle {
    /// Reads the files that describe the bundle; what can't be read is named, not followed.
    pub fn describe(&self) -> Result<Description, BundleError> {
        let path = self.manifest_path();
        let name = path.file_name().unwrap_or_default();
        let text = self.text(Path::new(name))?;
        let fail = |error| BundleError::Manifest {
            path: path.clone(),
            error,
        };
        let mut found = Description::default();
        match self.kind {
            BundleKind::Skillware => {
                found.manifest = skillware_document(&text).map_err(fail)?;
                found.instructions = self.optional(INSTRUCTIONS, &mut found.problems);
            }
            BundleKind::AgentSkill => {
                let (manifest, body) = agent_skill_document(&text).map_err(fail)?;
                found.manifest = manifest;
                found.instructions = Some(body.to_owned());
            }
        }
        found.card = self.card(&mut found.problems);
        if let Entry::PythonClass { file } = &self.manifest.entry {
            let source = self.optional(file, &mut found.problems);
            found.classes = skill_classes(&source.unwrap_or_default());
        }
        Ok(found)
    }

    fn card(&self, problems: &mut Vec<String>) -> Option<Value> {
        let text = self.optional(CARD, problems)?;
        match serde_json::from_str(&text) {
            Ok(card) => Some(card),
            Err(error) => {
                problems.push(format!("{}: {error}", self.root.join(CARD).display()));
                None
            }
        }
    }

    fn optional(&self, name: &str, problems: &mut Vec<String>) -> Option<String> {
        match self.text_if_present(name) {
            Ok(text) => text,
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs::write;
    use std::os::unix::fs::symlink;

    fn skill(files: &[(&str, &str)]) -> (tempfile::TempDir, Bundle) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(dir.path().join(name), text).unwrap();
        }
        let bundle = Bundle::open(dir.path()).unwrap();
        (dir, bundle)
    }

    #[test]
    fn a_skillware_bundle_describes_itself_by_its_files() {
        let (_dir, bundle) = skill(&[
            ("manifest.yaml", "name: a\nissuer: {name: x}\n"),
            ("instructions.md", "Ask first.\n"),
            ("card.json", "{\"icon\": \"x\"}"),
            ("skill.py", "class A:\n    def execute(self, params): ...\n"),
        ]);
        let found = bundle.describe().unwrap();
        assert_eq!(found.manifest["issuer"], json!({"name": "x"}));
        assert_eq!(found.instructions.as_deref(), Some("Ask first.\n"));
        assert_eq!(found.card, Some(json!({"icon": "x"})));
        assert_eq!(found.classes, ["A"]);
        assert!(found.problems.is_empty());
    }

    #[test]
    fn the_text_of_an_agent_skill_is_its_instructions() {
        let (_dir, bundle) = skill(&[("SKILL.md", "---\nname: a\n---\nDo it.\n")]);
        let found = bundle.describe().unwrap();
        assert_eq!(found.instructions.as_deref(), Some("Do it.\n"));
        assert_eq!(found.card, None);
    }

    #[test]
    fn a_link_to_a_file_of_the_host_is_named_and_not_read() {
        let outside = tempfile::NamedTempFile::new().unwrap();
        write(outside.path(), "secret").unwrap();
        let (dir, bundle) = skill(&[
            ("manifest.yaml", "name: a\n"),
            ("skill.py", ""),
            ("card.json", "{"),
        ]);
        symlink(outside.path(), dir.path().join("instructions.md")).unwrap();
        let found = bundle.describe().unwrap();
        assert_eq!((found.instructions, found.card), (None, None));
        assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
        assert!(!format!("{:?}", found.problems).contains("secret"));
    }
}
