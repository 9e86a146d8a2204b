//! Which modules Python source imports, by its import statements.
//!
//! Used to decide whether a framework must be in the cell. A wrong answer costs a needless package
//! or a readable ImportError, never safety, so this reads statements and not the language.

/// Whether an import statement in `source` names the top-level module `module`.
pub fn imports_module(source: &str, module: &str) -> bool {
    // Most files that don't import it don't mention it.
    source.contains(module)
        && code(source)
            .split(['\n', ';', ':'])
            .any(|s| imports(s.trim(), module))
}

fn imports(statement: &str, module: &str) -> bool {
    let after = |keyword: &str| {
        statement
            .strip_prefix(keyword)
            .filter(|rest| rest.starts_with([' ', '\t', '\\']))
    };
    let names = |dotted: &str| {
        let first = dotted.split('.').next().unwrap_or_default();
        // `skillware as s`: the name is the first word.
        first.split_whitespace().next() == Some(module)
    };
    if let Some(list) = after("import") {
        return list.split(',').any(names);
    }
    after("from").is_some_and(|rest| rest.contains("import") && names(rest))
}

/// The source with comments left out, strings emptied, and lines that continue joined.
pub(crate) fn code(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skip = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                out.push('"');
                string_length(rest, c)
            }
            '\\' => {
                out.push(' ');
                1 + rest[1..].strip_prefix('\r').map_or(0, |_| 1)
                    + usize::from(rest[1..].trim_start_matches('\r').starts_with('\n'))
            }
            _ => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(skip..).unwrap_or_default();
    }
    out
}

/// Bytes of the string that `text` begins with, quotes included. A string that never ends takes its
/// line, or all that is left for triple quotes.
fn string_length(text: &str, quote: char) -> usize {
    let triple: String = [quote; 3].iter().collect();
    let is_triple = text.starts_with(&triple);
    let start = if is_triple { 3 } else { 1 };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < start) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if is_triple {
            if text[at..].starts_with(&triple) {
                return at + 3;
            }
        } else if c == quote {
            return at + 1;
        } else if c == '\n' {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_statements_are_found() {
        for source in [
            "import skillware",
            "import os\r\nimport skillware\r\n",
            "from skillware.core import BaseSkill",
            "from skillware import core as c",
            "import a, skillware as s",
            "import skillware.core.base_skill",
            "try: import skillware\nexcept ImportError: pass",
            "x = 1; import skillware",
            "    from skillware.core.base_skill import (\n  BaseSkill,\n)",
            "import os, \\\n  skillware",
            "s = 'it\\'s'\nimport skillware",
            "\"\"\"doc\n'quote\n\"\"\"\nimport skillware # yes",
        ] {
            assert!(imports_module(source, "skillware"), "{source}");
        }
    }

    #[test]
    fn comments_strings_and_other_names_are_not_imports() {
        for source in [
            "# import skillware",
            "\"\"\"\nimport skillware\n\"\"\"",
            "'''x\nfrom skillware import y",
            "s = 'import skillware'",
            "import skillware_extra",
            "import myskillware",
            "from . import skillware",
            "from a.skillware import b",
            "import a.skillware",
            "important = skillware",
            "raise E from skillware",
            "",
        ] {
            assert!(!imports_module(source, "skillware"), "{source}");
        }
    }
}
