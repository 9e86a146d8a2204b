//! The index that an installer asks when nobody names one. Its hosts are not written here: pip says
//! which they are, in a file of its own that comes with every interpreter. uv has the same default.

use crate::PythonFacts;
use crate::address::Address;
use crate::installer::{Tool, pip_folders, pip_wheels};
use crate::settings::read_small;
use crate::wheel_file;

const FILE: &str = "pip/_internal/models/index.py";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DefaultIndex {
    pub(crate) index: Address,
    /// Where it keeps what is downloaded.
    pub(crate) files: Address,
}

impl DefaultIndex {
    /// From the pip that installs, or that lies beside the interpreter.
    pub(crate) fn find(python: &PythonFacts, tool: &Tool) -> Option<DefaultIndex> {
        let own = match tool {
            Tool::PipWheel(wheel) => wheel_file::read(wheel, FILE),
            Tool::PipModule | Tool::Uv(_) => None,
        };
        let folders = pip_folders(python).into_iter().filter_map(|folder| {
            let text = read_small(&folder.join(FILE))?;
            String::from_utf8(text).ok()
        });
        let wheels = pip_wheels(python)
            .into_iter()
            .filter_map(|wheel| wheel_file::read(&wheel, FILE));
        own.into_iter()
            .chain(folders)
            .chain(wheels)
            .find_map(|text| parse(&text))
    }
}

/// The first `NAME = PackageIndex("https://…", file_storage_domain="…")`.
fn parse(text: &str) -> Option<DefaultIndex> {
    let (_, call) = text.split_once("= PackageIndex(")?;
    let (arguments, _) = call.split_once(')')?;
    let (url, rest) = quoted(arguments)?;
    let (_, rest) = rest.split_once("file_storage_domain")?;
    let (domain, _) = quoted(rest)?;
    Some(DefaultIndex {
        index: Address::of_index(url).ok()??,
        files: Address::of_index(&format!("https://{domain}/")).ok()??,
    })
}

/// The first string literal, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let start = text.find(['"', '\''])?;
    let quote = text[start..].chars().next()?;
    text[start + 1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn pip_s_own_words_are_understood() {
        let text = "class PackageIndex:\n    def __init__(self, url: str, file_storage_domain: str) -> None:\n        pass\n\n\
            Main = PackageIndex(\"https://index.example/\", file_storage_domain=\"files.example\")\n\
            Test = PackageIndex(\n    \"https://test.example/\", file_storage_domain=\"test-files.example\"\n)\n";
        let found = parse(text).unwrap();
        assert_eq!(found.index.host.to_string(), "index.example");
        assert_eq!(found.files.host.to_string(), "files.example");
        assert_eq!((found.index.port, found.files.port), (443, 443));
        let wrapped = text.replacen("PackageIndex(\"", "PackageIndex(\n    \"", 1);
        assert_eq!(parse(&wrapped), Some(found));
    }

    #[test]
    fn other_words_give_no_index() {
        for text in [
            "",
            "x = PackageIndex(",
            "x = PackageIndex()",
            "x = PackageIndex(\"https://a.example/\")",
            "x = PackageIndex(\"/path\", file_storage_domain=\"b.example\")",
            "x = PackageIndex(\"https://a.example/\", file_storage_domain=\"b c\")",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn this_machine_s_pip_has_one() {
        let python = PythonFacts {
            executable: "/usr/bin/python3".into(),
            prefix: "/usr".into(),
            version: (3, 11),
        };
        // The tests need pip or its wheel anyway: real installs are among them.
        let found = DefaultIndex::find(&python, &Tool::PipModule).unwrap();
        assert_ne!(found.index.host, found.files.host);
        for wheel in pip_wheels(&python) {
            let by_wheel = DefaultIndex::find(&python, &Tool::PipWheel(wheel)).unwrap();
            assert_eq!(by_wheel, found);
        }
        let nowhere = PythonFacts {
            prefix: "/nonexistent".into(),
            ..python
        };
        if !Path::new("/usr/share/python-wheels").exists() {
            assert_eq!(DefaultIndex::find(&nowhere, &Tool::PipModule), None);
        }
    }
}
