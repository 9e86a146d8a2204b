//! Skillware's `manifest.yaml`.
//!
//! Its authors add keys freely (tags, presentation, constitution), so unknown ones pass at the top
//! level; what we act on is strict.

use crate::check_policy;
use crate::env_vars::env_vars;
use crate::error::{ManifestError, Parsed, Warning, clean};
use crate::execution::Execution;
use crate::model::Manifest;
use crate::near_miss::near_misses;
use crate::requirement::{check_count, check_requirement};
use crate::security_policy::SecurityPolicy;
use crate::yaml::{self, Node, Value};
use skillcell_core::{Location, SkillId};

const MATTERS: [&str; 10] = [
    "name",
    "version",
    "description",
    "category",
    "execution",
    "execution_mode",
    "parameters",
    "requirements",
    "env_vars",
    "security_policy",
];
/// Keys of the format that we don't act on.
const KNOWN: [&str; 9] = [
    "short_description",
    "tags",
    "constitution",
    "presentation",
    "issuer",
    "outputs",
    "tier",
    "shape",
    "target",
];

/// Reads a `manifest.yaml`. `dir_name` names the skill where the manifest doesn't.
pub fn parse_skillware(text: &str, dir_name: &str) -> Result<Parsed, ManifestError> {
    let root = yaml::parse(text)?;
    let entries = root.entries("manifest")?;
    let mut warnings = near_misses(entries, &MATTERS, &KNOWN);
    let id = skill_id(&root, dir_name, &mut warnings)?;
    let category = match optional_text(&root, "category")? {
        Some(category) => {
            if id.category().is_some_and(|of_id| of_id != category) {
                let message = format!(
                    "category `{}` is not the one in the name `{id}`",
                    clean(&category)
                );
                warnings.push(Warning {
                    message,
                    location: root.get("category").map(|n| n.location),
                });
            }
            Some(category)
        }
        None => id.category().map(str::to_owned),
    };
    let execution = Execution::read(root.get("execution"), root.get("execution_mode"))?;
    let manifest = Manifest {
        version: optional_text(&root, "version")?,
        description: optional_text(&root, "description")?,
        category,
        execution: execution.isolation,
        entry: execution.entry(),
        parameters: parameters(&root)?,
        requirements: requirements(&root)?,
        env_vars: root
            .get("env_vars")
            .map(env_vars)
            .transpose()?
            .unwrap_or_default(),
        security_policy: match root.get("security_policy") {
            Some(node) => check_policy::from_node(node)?,
            None => SecurityPolicy::default(),
        },
        id,
    };
    Ok(Parsed {
        manifest,
        policy_file: None,
        warnings,
    })
}

/// The id in `name`, or the folder's name with a warning where there is none.
pub(crate) fn skill_id(
    root: &Node,
    dir_name: &str,
    warnings: &mut Vec<Warning>,
) -> Result<SkillId, ManifestError> {
    match root.get("name") {
        Some(node) if !node.is_null() => {
            SkillId::parse(node.text("name")?).map_err(|error| ManifestError::SkillName {
                message: clean(&error.to_string()),
                location: node.location,
            })
        }
        _ => {
            let location = Location { line: 1, column: 1 };
            let id = SkillId::parse(dir_name).map_err(|_| ManifestError::MissingField {
                field: "name",
                location,
            })?;
            let message = format!("`name` is missing; the folder's name `{id}` is used");
            warnings.push(Warning {
                message,
                location: None,
            });
            Ok(id)
        }
    }
}

pub(crate) fn optional_text(root: &Node, field: &str) -> Result<Option<String>, ManifestError> {
    match root.get(field) {
        Some(node) if !node.is_null() => Ok(Some(node.text(field)?.to_owned())),
        _ => Ok(None),
    }
}

fn parameters(root: &Node) -> Result<Option<serde_json::Value>, ManifestError> {
    match root.get("parameters") {
        Some(node) if !node.is_null() => {
            if !matches!(node.value, Value::Mapping(_)) {
                return Err(node.wrong_type("parameters", "a JSON Schema as a mapping"));
            }
            let json = node.to_json();
            json.map(Some)
                .map_err(|(message, location)| ManifestError::Parameters { message, location })
        }
        _ => Ok(None),
    }
}

fn requirements(root: &Node) -> Result<Vec<String>, ManifestError> {
    match root.get("requirements") {
        Some(node) if !node.is_null() => {
            let items = node.items("requirements")?;
            check_count(items.len(), node.location)?;
            items
                .iter()
                .map(|item| check_requirement(item.text("requirements")?, Some(item.location)))
                .collect()
        }
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Entry;
    use serde_json::json;
    use skillcell_core::Isolation;

    const WHOLE: &str = r#"
name: finance/wallet_screening
version: 2.0
tier: core
tags: [a, b]
description: |
  Screens wallets.
issuer: {name: x}
execution: sandbox
env_vars:
  ETHERSCAN_API_KEY: {description: key, required: true}
requirements:
  - requests
parameters:
  type: object
  properties:
    mode: {type: string, enum: [on, off], default: off}
security_policy:
  version: 1
  network: {egress: [{domains: [api.etherscan.io], ports: [443]}]}
  env: [ETHERSCAN_API_KEY]
"#;

    fn error(text: &str) -> String {
        let error = parse_skillware(text, "dir").unwrap_err();
        format!("{}: {error}", error.location().unwrap())
    }

    #[test]
    fn a_whole_manifest_is_read() {
        let Parsed {
            manifest, warnings, ..
        } = parse_skillware(WHOLE, "wallet_screening").unwrap();
        assert_eq!(warnings, []);
        assert_eq!(manifest.id.as_str(), "finance/wallet_screening");
        assert_eq!(manifest.version.as_deref(), Some("2.0"));
        assert_eq!(manifest.category.as_deref(), Some("finance"));
        assert_eq!(manifest.execution, Some(Isolation::Sandbox));
        assert_eq!(
            manifest.entry,
            Entry::PythonClass {
                file: "skill.py".into()
            }
        );
        assert_eq!(manifest.requirements, ["requests"]);
        assert!(manifest.env_vars[0].required);
        assert_eq!(manifest.security_policy.network.egress.len(), 1);
    }

    #[test]
    fn unquoted_words_in_the_schema_stay_words() {
        let parameters = parse_skillware(WHOLE, "x")
            .unwrap()
            .manifest
            .parameters
            .unwrap();
        assert_eq!(
            parameters["properties"]["mode"]["enum"],
            json!(["on", "off"])
        );
        assert_eq!(parameters["properties"]["mode"]["default"], json!("off"));
    }

    #[test]
    fn a_manifest_without_policy_asks_for_nothing() {
        let manifest = parse_skillware("name: a\n", "x").unwrap().manifest;
        assert_eq!(manifest.security_policy, SecurityPolicy::default());
        assert_eq!(manifest.execution, None);
        assert!(manifest.env_vars.is_empty() && manifest.requirements.is_empty());
    }

    #[test]
    fn a_near_miss_of_a_key_that_matters_is_a_warning_with_its_place() {
        let text = "name: a\nsecurity-policy: {version: 1}\nenvVars: {}\nmood: good\n";
        let warnings = parse_skillware(text, "x").unwrap().warnings;
        assert_eq!(warnings.len(), 2);
        assert!(
            warnings[0]
                .message
                .contains("did you mean `security_policy`")
        );
        assert_eq!(warnings[0].location.unwrap().to_string(), "2:1");
        assert!(warnings[1].message.contains("`env_vars`"));
    }

    #[test]
    fn errors_have_line_and_column() {
        assert_eq!(
            error("name: [a]\n"),
            "1:7: name: expected text, found a list"
        );
        assert!(error("name: a b\n").starts_with("1:7: name: `a b` is not a skill id"));
        assert!(
            error("name: a\nrequirements:\n  - ok\n  - -e .\n")
                .starts_with("4:5: requirement `-e .`")
        );
        assert!(
            error("name: a\nrequirements: requests\n")
                .starts_with("2:15: requirements: expected a list")
        );
        assert!(error("name: a\nsecurity_policy: {version: 1, nope: 1}\n").starts_with("2:31: "));
        assert!(
            error("name: a\nparameters: {maximum: .inf}\n").starts_with("2:23: parameters: `.inf`")
        );
        assert!(error("name: a\nparameters: [1]\n").starts_with("2:13: "));
        assert!(error("name: a\nname: b\n").starts_with("2:1: duplicate key"));
        assert!(error("- a\n").contains("expected a mapping, found a list"));
        assert!(error("").contains("expected a mapping, found nothing"));
    }

    #[test]
    fn a_missing_name_is_the_folders_or_an_error() {
        let parsed = parse_skillware("version: 1\n", "hello").unwrap();
        assert_eq!(parsed.manifest.id.as_str(), "hello");
        assert_eq!(parsed.warnings.len(), 1);
        assert!(parse_skillware("version: 1\n", "not a name").is_err());
    }

    #[test]
    fn a_category_other_than_the_names_is_a_warning() {
        let parsed = parse_skillware("name: a/b\ncategory: c\n", "x").unwrap();
        assert_eq!(parsed.manifest.category.as_deref(), Some("c"));
        assert_eq!(parsed.warnings.len(), 1);
    }
}
