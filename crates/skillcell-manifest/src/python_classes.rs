//! Which classes of a Python file are skills, by its statements.
//!
//! For callers that ask for a class by name. What runs is decided inside the cell, by the class
//! itself; a wrong answer here costs a readable error.

use crate::python_imports::code;

const METHODS: [&str; 4] = [
    "def execute(",
    "def aexecute(",
    "async def execute(",
    "async def aexecute(",
];

/// Top-level classes that define `execute` or `aexecute`, each once.
pub fn skill_classes(source: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut current: Option<&str> = None;
    let source = code(source);
    for line in source.lines() {
        if line.starts_with(|c: char| c.is_alphabetic() || c == '@' || c == '_') {
            current = line.strip_prefix("class ").map(name);
        } else if let Some(class) = current
            && METHODS.iter().any(|m| line.trim_start().starts_with(m))
            && !found.iter().any(|known| known == class)
        {
            found.push(class.to_owned());
        }
    }
    found
}

fn name(rest: &str) -> &str {
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    &rest[..end.unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_with_the_method_are_found_and_others_are_not() {
        let source = r#"
import enum
"""
class InText:
    def execute(self, params): ...
"""
class Colour(enum.Enum):
    RED = 1

@decorated
class Wallet(BaseSkill):
    limit = 3

    # a comment
    def execute(self, params):
        pass

class Later:
    async def aexecute(self, params): ...
    def execute(self, params): ...

def execute(params):
    class Inner:
        def execute(self): ...
"#;
        assert_eq!(skill_classes(source), ["Wallet", "Later"]);
        assert!(skill_classes("").is_empty());
    }
}
