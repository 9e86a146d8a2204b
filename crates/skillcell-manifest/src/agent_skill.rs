//! Agent Skills: the frontmatter of a `SKILL.md`.
//!
//! The body is for a model to read and never for us; only what stands between the first two `---`
//! lines is parsed. Other tools reject top-level keys that they don't know, so the policy usually
//! lives in a file that `metadata.security-policy` names.

use crate::check_policy;
use crate::error::{ManifestError, Parsed, Warning, clean};
use crate::model::{Entry, Manifest};
use crate::near_miss::near_misses;
use crate::security_policy::SecurityPolicy;
use crate::skillware::{optional_text, skill_id};
use crate::{MAX_BYTES, yaml};
use skillcell_core::Location;

const KNOWN: [&str; 7] = [
    "name",
    "description",
    "license",
    "compatibility",
    "allowed-tools",
    "metadata",
    "security_policy",
];
/// Keys of the other format, which mean nothing here.
const ELSEWHERE: [&str; 6] = [
    "requirements",
    "env_vars",
    "parameters",
    "execution",
    "execution_mode",
    "category",
];
const POLICY_KEY: &str = "security-policy";
const MAX_PATH: usize = 512;

/// Reads the frontmatter of a `SKILL.md`. `dir_name` names the skill where the frontmatter doesn't.
pub fn parse_agent_skill(text: &str, dir_name: &str) -> Result<Parsed, ManifestError> {
    if text.len() > MAX_BYTES {
        return Err(ManifestError::TooLarge {
            size: text.len() as u64,
            limit: MAX_BYTES as u64,
        });
    }
    // The opening line is line 1.
    let root = yaml::parse_from_line(split(text)?.0, 2)?;
    let entries = root.entries("frontmatter")?;
    let mut warnings = near_misses(entries, &["security_policy"], &KNOWN);
    for entry in entries
        .iter()
        .filter(|e| ELSEWHERE.contains(&e.key.as_str()))
    {
        let message = format!("`{}` means nothing in SKILL.md and is ignored", entry.key);
        warnings.push(Warning {
            message,
            location: Some(entry.key_location),
        });
    }
    let id = skill_id(&root, dir_name, &mut warnings)?;
    if id.as_str() != dir_name
        && let Some(node) = root.get("name")
    {
        let message = format!(
            "the name `{id}` is not the name of the folder, `{}`",
            clean(dir_name)
        );
        warnings.push(Warning {
            message,
            location: Some(node.location),
        });
    }
    let description = optional_text(&root, "description")?;
    if description.is_none() {
        warnings.push(Warning {
            message: "`description` is missing".to_owned(),
            location: None,
        });
    }
    let (mut policy_file, mut version) = (None, None);
    if let Some(metadata) = root.get("metadata")
        && !metadata.is_null()
    {
        warnings.extend(near_misses(
            metadata.entries("metadata")?,
            &[POLICY_KEY],
            &["version"],
        ));
        version = optional_text(metadata, "version")?;
        if let Some(node) = metadata.get(POLICY_KEY) {
            let path = node.text("metadata.security-policy")?;
            policy_file = Some(bundle_path(path, node.location)?);
        }
    }
    let security_policy = match root.get("security_policy") {
        Some(node) if policy_file.is_some() => {
            let message =
                "given here and as a file in metadata.security-policy: keep one".to_owned();
            return Err(ManifestError::Policy {
                message,
                location: node.location,
            });
        }
        Some(node) => check_policy::from_node(node)?,
        None => SecurityPolicy::default(),
    };
    let manifest = Manifest {
        version,
        description,
        category: id.category().map(str::to_owned),
        execution: None,
        entry: Entry::None,
        parameters: None,
        requirements: Vec::new(),
        env_vars: Vec::new(),
        security_policy,
        id,
    };
    Ok(Parsed {
        manifest,
        policy_file,
        warnings,
    })
}

/// What stands between the first line, which is `---`, and the next line that is; and the rest.
pub(crate) fn split(text: &str) -> Result<(&str, &str), ManifestError> {
    let fail = |message, line| ManifestError::Frontmatter {
        message,
        location: Location { line, column: 1 },
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_fence = |line: &str| line.trim_end() == "---";
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !is_fence(first) {
        return Err(fail(
            "the frontmatter is missing: the first line is not `---`",
            1,
        ));
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if is_fence(line) {
            return Ok((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    Err(fail("the frontmatter has no closing line `---`", 1))
}

/// A relative path that stays below its base by its words alone. Whether links lead it elsewhere is
/// for whoever opens it.
fn bundle_path(path: &str, location: Location) -> Result<String, ManifestError> {
    let fail = |problem| ManifestError::PolicyFile {
        path: clean(path),
        problem,
        location,
    };
    if path.is_empty() || path.len() > MAX_PATH {
        return Err(fail("the path is empty or too long"));
    }
    if path.starts_with('/') {
        return Err(fail("the path must be relative"));
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err(fail("the path has a control character or a backslash"));
    }
    let words: Vec<&str> = path
        .split('/')
        .filter(|w| !matches!(*w, "" | "."))
        .collect();
    if words.contains(&"..") {
        return Err(fail("the path leads out of the bundle"));
    }
    if words.is_empty() {
        return Err(fail("the path names no file"));
    }
    Ok(words.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = parse_agent_skill(text, "a").unwrap_err();
        format!("{}: {error}", error.location().unwrap())
    }

    #[test]
    fn frontmatter_is_read_and_the_body_is_not() {
        let text = "---\nname: a\ndescription: does a\nlicense: MIT\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: x\n  version: \"1.0\"\n---\n# Body\n: not [yaml\n---\nmore\n";
        let parsed = parse_agent_skill(text, "a").unwrap();
        assert_eq!(parsed.warnings, []);
        assert_eq!(parsed.manifest.id.as_str(), "a");
        assert_eq!(parsed.manifest.version.as_deref(), Some("1.0"));
        assert_eq!(parsed.manifest.entry, Entry::None);
        assert_eq!(parsed.policy_file, None);
    }

    #[test]
    fn carriage_returns_and_a_byte_order_mark_are_tolerated() {
        let text = "\u{feff}---\r\nname: a\r\ndescription: b\r\n--- \r\nbody";
        let parsed = parse_agent_skill(text, "a").unwrap();
        assert_eq!(parsed.manifest.description.as_deref(), Some("b"));
    }

    #[test]
    fn lines_count_from_the_start_of_the_file() {
        assert!(error("---\nname: a\nname: b\n---\n").starts_with("3:1: duplicate"));
        assert!(
            error("---\nname: a\ndescription: [\n---\n").starts_with("4:")
                || error("---\nname: a\ndescription: [\n---\n").starts_with("3:")
        );
        let text = "---\nname: a\nsecurity_policy:\n  version: 1\n  nope: 1\n---\n";
        assert!(error(text).starts_with("5:3: security_policy: unknown field `nope`"));
    }

    #[test]
    fn missing_fences_are_named() {
        assert!(error("# Title\n").contains("first line is not"));
        assert!(error("").contains("first line is not"));
        assert!(error("---\nname: a\n").contains("no closing line"));
        assert!(error("---").contains("no closing line"));
        assert!(error("---\n---\n").contains("expected a mapping"));
    }

    #[test]
    fn the_policy_file_stays_inside_the_bundle() {
        let file = |path: &str| {
            let text = format!(
                "---\nname: a\ndescription: b\nmetadata: {{security-policy: \"{path}\"}}\n---\n"
            );
            parse_agent_skill(&text, "a").map(|p| p.policy_file)
        };
        assert_eq!(
            file("./policy//security_policy.yaml").unwrap().as_deref(),
            Some("policy/security_policy.yaml")
        );
        for bad in [
            "/etc/passwd",
            "../x",
            "a/../../x",
            "",
            ".",
            "./",
            "a\\nb",
            "a\\\\b",
            "a\\0",
        ] {
            assert!(
                matches!(file(bad), Err(ManifestError::PolicyFile { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn two_policies_are_an_error() {
        let text = "---\nname: a\nmetadata: {security-policy: p.yaml}\nsecurity_policy: {version: 1}\n---\n";
        assert!(error(text).contains("keep one"));
    }

    #[test]
    fn keys_that_do_nothing_here_are_warned_of() {
        let text = "---\nname: b\ndescription: d\nrequirements: [x]\nsecurity-policy: p\nmetadata: {security_policy: p}\n---\n";
        let messages: Vec<_> = parse_agent_skill(text, "a")
            .unwrap()
            .warnings
            .into_iter()
            .map(|w| w.message)
            .collect();
        assert_eq!(messages.len(), 4, "{messages:?}");
    }
}
