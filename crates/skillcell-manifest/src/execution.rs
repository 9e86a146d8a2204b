//! `execution` and `execution_mode`: how isolated the skill asks to be, and what to start.

use crate::error::{ManifestError, clean};
use crate::model::Entry;
use crate::yaml::{Node, Value};
use skillcell_core::{Isolation, Location};

const MAX_ARGUMENTS: usize = 256;
const MAX_ARGUMENT_BYTES: usize = 4096;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Execution {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) command: Option<Vec<String>>,
}

impl Execution {
    pub(crate) fn read(
        execution: Option<&Node>,
        mode: Option<&Node>,
    ) -> Result<Self, ManifestError> {
        let mut read = Execution::default();
        match execution {
            Some(node) if !node.is_null() => match &node.value {
                Value::Mapping(entries) => {
                    for entry in entries {
                        match entry.key.as_str() {
                            "isolation" => read.isolation = Some(isolation(&entry.value)?),
                            "command" => read.command = Some(command(&entry.value)?),
                            other => {
                                let other = clean(other);
                                let message = format!(
                                    "unknown field `{other}`, expected `isolation` or `command`"
                                );
                                return Err(fail(message, entry.key_location));
                            }
                        }
                    }
                }
                _ => read.isolation = Some(isolation(node)?),
            },
            _ => {}
        }
        if let Some(node) = mode
            && !node.is_null()
        {
            let asked = isolation(node)?;
            if read.isolation.is_some_and(|other| other != asked) {
                return Err(fail(
                    "execution_mode asks for another level than execution",
                    node.location,
                ));
            }
            read.isolation = Some(asked);
        }
        Ok(read)
    }

    /// The command, or the class in `skill.py` where there is none.
    pub(crate) fn entry(self) -> Entry {
        match self.command {
            Some(argv) => Entry::Command { argv },
            None => Entry::PythonClass {
                file: "skill.py".to_owned(),
            },
        }
    }
}

fn isolation(node: &Node) -> Result<Isolation, ManifestError> {
    let text = node.text("execution")?;
    text.parse()
        .map_err(|message: String| fail(clean(&message), node.location))
}

fn command(node: &Node) -> Result<Vec<String>, ManifestError> {
    let items = node.items("execution.command")?;
    if items.is_empty() || items.len() > MAX_ARGUMENTS {
        let message = format!(
            "command has a program and at most {} arguments",
            MAX_ARGUMENTS - 1
        );
        return Err(fail(message, node.location));
    }
    let mut argv = Vec::with_capacity(items.len());
    for item in items {
        let argument = item.text("execution.command")?;
        if argument.contains('\0') || argument.len() > MAX_ARGUMENT_BYTES {
            return Err(fail(
                "an argument of command has a NUL or is too long",
                item.location,
            ));
        }
        if argv.is_empty() && argument.is_empty() {
            return Err(fail("the program of command is empty", item.location));
        }
        argv.push(argument.to_owned());
    }
    Ok(argv)
}

fn fail(message: impl Into<String>, location: Location) -> ManifestError {
    ManifestError::Execution {
        message: message.into(),
        location,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;

    fn read(text: &str) -> Result<Execution, ManifestError> {
        let node = parse(text)?;
        Execution::read(node.get("execution"), node.get("execution_mode"))
    }

    #[test]
    fn levels_are_read_in_every_spelling() {
        for (text, want) in [
            ("execution: sandbox", Some(Isolation::Sandbox)),
            ("execution: subprocess", Some(Isolation::Process)),
            ("execution: in_process", Some(Isolation::InProcess)),
            ("execution_mode: isolated", Some(Isolation::Sandbox)),
            ("execution_mode: subprocess", Some(Isolation::Process)),
            ("execution: {isolation: wasm}", Some(Isolation::Wasm)),
            (
                "execution: sandbox\nexecution_mode: isolated",
                Some(Isolation::Sandbox),
            ),
            ("execution:", None),
            ("{}", None),
        ] {
            assert_eq!(read(text).unwrap().isolation, want, "{text}");
        }
    }

    #[test]
    fn a_command_is_a_list_with_a_program() {
        let read_command =
            read("execution: {isolation: sandbox, command: [node, main.js, 5]}").unwrap();
        assert_eq!(read_command.isolation, Some(Isolation::Sandbox));
        let argv = vec!["node".to_owned(), "main.js".to_owned(), "5".to_owned()];
        assert_eq!(read_command.entry(), Entry::Command { argv });
        for bad in [
            "node main.js",
            "[]",
            "['']",
            "[node, [a]]",
            "[~]",
            "[\"a\\0b\"]",
        ] {
            assert!(
                read(&format!("execution: {{command: {bad}}}")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn unknown_levels_fields_and_contradictions_are_errors() {
        for bad in [
            "execution: sandboxed",
            "execution: [sandbox]",
            "execution: {comand: [x]}",
            "execution: sandbox\nexecution_mode: subprocess",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
