//! Environment variables that a manifest declares.
//!
//! The reference runtime takes `required` as false where an entry has details but not that one, and
//! as true where an entry has no details at all; so do we, because a missing variable should be
//! reported by both or by neither.

use crate::error::{ManifestError, clean};
use crate::model::EnvVar;
use crate::yaml::{Node, Resolved, Value};
use skillcell_core::{EnvName, Location};

const MAX_VARS: usize = 256;

/// `NAME: {required: …}` pairs, a list of names, or a list of `{name: …, required: …}`.
pub(crate) fn env_vars(node: &Node) -> Result<Vec<EnvVar>, ManifestError> {
    let mut vars: Vec<EnvVar> = Vec::new();
    match &node.value {
        _ if node.is_null() => {}
        Value::Mapping(entries) => {
            for entry in entries {
                let required = required(&entry.value)?;
                push(&mut vars, &entry.key, required, entry.key_location)?;
            }
        }
        Value::Sequence(items) => {
            for item in items {
                match item.get("name") {
                    Some(name) => {
                        push(
                            &mut vars,
                            name.text("env_vars")?,
                            required(item)?,
                            name.location,
                        )?;
                    }
                    None => push(&mut vars, item.text("env_vars")?, true, item.location)?,
                }
            }
        }
        Value::Scalar(_) => return Err(node.wrong_type("env_vars", "a mapping or a list of names")),
    }
    Ok(vars)
}

fn push(
    vars: &mut Vec<EnvVar>,
    name: &str,
    required: bool,
    at: Location,
) -> Result<(), ManifestError> {
    let fail = |message: String| ManifestError::EnvVar {
        message,
        location: at,
    };
    let name = EnvName::parse(name).map_err(|e| fail(clean(&e.to_string())))?;
    if vars.iter().any(|var| var.name == name) {
        return Err(fail(format!("`{name}` is declared twice")));
    }
    if vars.len() == MAX_VARS {
        return Err(fail(format!("more than {MAX_VARS} variables")));
    }
    vars.push(EnvVar { name, required });
    Ok(())
}

fn required(details: &Node) -> Result<bool, ManifestError> {
    if !matches!(details.value, Value::Mapping(_)) {
        return Ok(true);
    }
    let Some(node) = details.get("required") else {
        return Ok(false);
    };
    if let Value::Scalar(scalar) = &node.value {
        match scalar.resolve() {
            Resolved::Bool(value) => return Ok(value),
            Resolved::Null => return Ok(false),
            // Booleans for the reference runtime, whose YAML is version 1.1.
            Resolved::Text("yes" | "Yes" | "on" | "On") => return Ok(true),
            Resolved::Text("no" | "No" | "off" | "Off") => return Ok(false),
            _ => {}
        }
    }
    Err(node.wrong_type("env_vars: required", "true or false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn read(text: &str) -> Result<Vec<(String, bool)>, ManifestError> {
        let vars = env_vars(&parse(text)?)?;
        Ok(vars
            .into_iter()
            .map(|v| (v.name.to_string(), v.required))
            .collect())
    }

    #[test]
    fn required_is_false_with_other_details_and_true_without_any() {
        let text = "A: {description: x, required: true}\nB: {description: x}\nC: text\nD:\nE: {required: no}\n";
        let want = [
            ("A", true),
            ("B", false),
            ("C", true),
            ("D", true),
            ("E", false),
        ];
        assert_eq!(read(text).unwrap(), want.map(|(n, r)| (n.to_owned(), r)));
    }

    #[test]
    fn lists_of_names_and_of_details_are_accepted() {
        let want = [("A", true), ("B", false), ("C", true)].map(|(n, r)| (n.to_owned(), r));
        assert_eq!(
            read("[A, {name: B}, {name: C, required: true}]").unwrap(),
            want
        );
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn variables_that_steer_the_loader_and_repeated_ones_are_errors() {
        let error = read("A: {}\nLD_PRELOAD: {required: false}\n").unwrap_err();
        assert_eq!(error.location().unwrap().to_string(), "2:1");
        for bad in [
            "A B: {}",
            "[A, A]",
            "text",
            "[[A]]",
            "[{required: true}]",
            "A: {required: maybe}",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
