//! PEP 723: requirements in a comment block at the top of a script.
//!
//! Only `dependencies` is taken. `[tool.uv]` and the like could name another index, which is the
//! operator's to choose, so they are not read.

use crate::error::{ManifestError, clean};
use crate::requirement::{check_count, check_requirement};
use serde::Deserialize;
use skillcell_core::Location;
use toml::Spanned;

const MAX_BLOCK: usize = 64 << 10;

#[derive(Deserialize)]
struct Metadata {
    dependencies: Option<Vec<Spanned<String>>>,
}

/// The requirements in the `# /// script` block of `source`, or `None` where it has no such block.
pub fn pep723_requirements(source: &str) -> Result<Option<Vec<String>>, ManifestError> {
    let Some(block) = script_block(source)? else {
        return Ok(None);
    };
    let metadata: Metadata = toml::from_str(&block.toml).map_err(|error| {
        let location = block.locate(error.span().map_or(0, |span| span.start));
        ManifestError::ScriptMetadata {
            message: clean(error.message()),
            location,
        }
    })?;
    let dependencies = metadata.dependencies.unwrap_or_default();
    check_count(dependencies.len(), block.locate(0))?;
    dependencies
        .into_iter()
        .map(|item| {
            let location = block.locate(item.span().start);
            check_requirement(item.get_ref(), Some(location))
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// The content of the block, without the comment marks.
struct Block {
    toml: String,
    /// The line of the file on which the content begins.
    first_line: u64,
}

impl Block {
    fn locate(&self, offset: usize) -> Location {
        let before = self.toml.get(..offset).unwrap_or(&self.toml);
        let line = before.matches('\n').count() as u64;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count() as u64;
        // The comment mark and its space stand before every column.
        Location {
            line: self.first_line + line,
            column: column + 3,
        }
    }
}

fn script_block(source: &str) -> Result<Option<Block>, ManifestError> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = None;
    let mut at = 0;
    while at < lines.len() {
        if !opens_block(lines[at]) {
            at += 1;
            continue;
        }
        let run = at + 1..at + 1 + comment_lines(&lines[at + 1..]);
        // The last closing line counts: the content may hold one as text. Without one there is no
        // block here, nor from any later line of the same run: looking again would be quadratic.
        let closing = lines[run.clone()].iter().rposition(|line| *line == "# ///");
        let Some(length @ 1..) = closing else {
            at = run.end;
            continue;
        };
        let content = run.start..run.start + length;
        let next = content.end + 1;
        if lines[at] == "# /// script" {
            let location = Location {
                line: at as u64 + 1,
                column: 1,
            };
            let fail = |message: &str| ManifestError::ScriptMetadata {
                message: message.to_owned(),
                location,
            };
            if found.is_some() {
                return Err(fail(
                    "a second script block begins here, and only one may be",
                ));
            }
            let mut toml = String::new();
            for line in &lines[content] {
                toml.push_str(line.strip_prefix("# ").unwrap_or_default());
                toml.push('\n');
            }
            if toml.len() > MAX_BLOCK {
                return Err(fail("the block is longer than 64 KiB"));
            }
            found = Some(Block {
                toml,
                first_line: at as u64 + 2,
            });
        }
        at = next;
    }
    Ok(found)
}

/// `# /// TYPE`
fn opens_block(line: &str) -> bool {
    line.strip_prefix("# /// ").is_some_and(|kind| {
        !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

/// How many lines from the first on are comments of the form that a block has.
fn comment_lines(lines: &[&str]) -> usize {
    lines
        .iter()
        .take_while(|line| **line == "#" || line.starts_with("# "))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<Option<Vec<String>>, ManifestError> {
        pep723_requirements(source)
    }

    #[test]
    fn dependencies_of_the_script_block_are_read() {
        let source = "#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n#\n# [tool.uv]\n# index-url = \"https://evil.example\"\n# ///\nimport requests\n";
        assert_eq!(read(source).unwrap().unwrap(), ["requests<3", "rich"]);
        assert_eq!(
            read(&source.replace('\n', "\r\n")).unwrap().unwrap(),
            ["requests<3", "rich"]
        );
    }

    #[test]
    fn other_and_unclosed_blocks_are_ignored() {
        for source in [
            "",
            "import os\n",
            "# /// script\n# dependencies = [\"x\"]\n",
            "# /// script\n# dependencies = [\"x\"]\n\n# ///\n",
            "# /// other\n# dependencies = [\"x\"]\n# ///\n",
            "#/// script\n# dependencies = [\"x\"]\n# ///\n",
            "# /// script\n# ///\n",
        ] {
            assert_eq!(read(source), Ok(None), "{source}");
        }
        assert_eq!(
            read("# /// script\n# requires-python = \"3\"\n# ///\n"),
            Ok(Some(vec![]))
        );
    }

    #[test]
    fn many_blocks_that_never_close_are_read_once() {
        assert_eq!(read(&"# /// script\n".repeat(200_000)), Ok(None));
    }

    #[test]
    fn mistakes_have_the_line_of_the_script() {
        let error = read("x = 1\n# /// script\n# dependencies = [\n#   \"-e .\",\n# ]\n# ///\n")
            .unwrap_err();
        assert_eq!(error.location().unwrap().to_string(), "4:5");
        let error = read("# /// script\n# dependencies = [\n# ///\n").unwrap_err();
        assert!(matches!(error, ManifestError::ScriptMetadata { .. }));
        assert!(read("# /// script\n# dependencies = \"x\"\n# ///\n").is_err());
        assert!(read("# /// script\n# a = 1\n# ///\n\n# /// script\n# a = 1\n# ///\n").is_err());
    }

    #[test]
    fn deep_nesting_in_the_block_is_refused() {
        let source = format!("# /// script\n# a = {}\n# ///\n", "[".repeat(20_000));
        assert!(read(&source).is_err());
    }
}
