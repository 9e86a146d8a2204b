//! Python requirements, before an installer sees them.
//!
//! An installer obeys more than package names: options (`--index-url`), paths, direct URLs,
//! variables (`${TOKEN}`) and file names of archives. Each is a way around the operator's index, so
//! only the part of PEP 508 that names a package of an index passes, by grammar and not by a list of
//! what is bad.

use crate::error::{ManifestError, clean};
use crate::marker::marker_is_valid;
use skillcell_core::Location;

const MAX_BYTES: usize = 1000;
const MAX_REQUIREMENTS: usize = 500;
const ARCHIVES: [&str; 11] = [
    ".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tlz",
    ".tar.lz",
];

/// One requirement, trimmed, or why an installer must not see it.
pub fn check_requirement(text: &str, location: Option<Location>) -> Result<String, ManifestError> {
    match problem(text.trim_matches([' ', '\t'])) {
        None => Ok(text.trim_matches([' ', '\t']).to_owned()),
        Some(problem) => Err(ManifestError::Requirement {
            requirement: clean(text),
            problem,
            location,
        }),
    }
}

pub(crate) fn check_count(count: usize, location: Location) -> Result<(), ManifestError> {
    if count > MAX_REQUIREMENTS {
        let message = format!("{count} requirements are more than the limit of {MAX_REQUIREMENTS}");
        return Err(ManifestError::Limit { message, location });
    }
    Ok(())
}

fn problem(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    if text.len() > MAX_BYTES {
        return Some("is too long");
    }
    if !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Some("has a line break, a control character or a letter outside ASCII");
    }
    if text.starts_with('-') {
        return Some("is an option for the installer, not a package");
    }
    let (package, marker) = match text.split_once(';') {
        Some((package, marker)) => (package.trim(), Some(marker.trim())),
        None => (text, None),
    };
    if package.contains('@')
        || package.contains("://")
        || package.to_ascii_lowercase().starts_with("file:")
    {
        return Some("is a direct URL, which would bypass the package index");
    }
    if package.starts_with('.') || package.contains(['/', '\\']) {
        return Some("is a path, not a package");
    }
    let end = package.find(|c: char| !is_name(c)).unwrap_or(package.len());
    let (name, rest) = package.split_at(end);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !name.ends_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Some("doesn't begin with the name of a package");
    }
    let lower = name.to_ascii_lowercase();
    if ARCHIVES.iter().any(|extension| lower.ends_with(extension)) {
        return Some("is the file name of an archive, not a package");
    }
    let Some(rest) = extras(rest.trim_start()) else {
        return Some("has extras that aren't a list of names in brackets");
    };
    if !versions(rest.trim()) {
        return Some("has a version that isn't written like >=1.2,<2");
    }
    match marker {
        Some(marker) if !marker_is_valid(marker) => {
            Some("has a condition that isn't written like python_version < \"3.12\"")
        }
        _ => None,
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// What follows `[a,b]`, or all of it where there are no extras.
fn extras(text: &str) -> Option<&str> {
    let Some(inner) = text.strip_prefix('[') else {
        return Some(text);
    };
    let (list, rest) = inner.split_once(']')?;
    let valid = list.trim().is_empty()
        || list
            .split(',')
            .all(|extra| !extra.trim().is_empty() && extra.trim().chars().all(is_name));
    valid.then_some(rest)
}

fn versions(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let list = match text.strip_prefix('(') {
        Some(inner) => match inner.strip_suffix(')') {
            Some(list) => list,
            None => return false,
        },
        None => text,
    };
    list.split(',').all(|clause| {
        let clause = clause.trim();
        // Longest first: `===` begins with `==`.
        ["===", "==", "~=", "!=", "<=", ">=", "<", ">"]
            .iter()
            .find_map(|op| clause.strip_prefix(op))
            .is_some_and(|version| {
                let version = version.trim();
                version.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && version
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"._-+!*".contains(&b))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_an_index_pass_as_written() {
        for good in [
            "requests",
            "biopython>=1.83",
            "python-pptx >= 1.0.0",
            "requests[security,tests]>=2.8.1,==2.8.*",
            "zope.interface~=6.0",
            "a===1.0+local",
            "a (>=1,<2)",
            "numpy ; python_version < '3.12' and (sys_platform == \"linux\" or os_name != 'nt')",
            "a; extra == 'x'",
            "a; 'linux' in sys_platform",
            "a; sys_platform not in 'win32, darwin'",
            "A1",
            "a[]",
            "a==1!2.0.post1.dev3",
        ] {
            assert_eq!(check_requirement(good, None).as_deref(), Ok(good));
        }
        assert_eq!(
            check_requirement(" requests ", None).as_deref(),
            Ok("requests")
        );
    }

    #[test]
    fn what_an_installer_would_obey_is_refused() {
        for bad in [
            "",
            "-e .",
            "--index-url=https://evil.example",
            "-rother.txt",
            "requests\n--index-url https://evil.example",
            "requests\r-e.",
            "requests --hash=sha256:00",
            "requests>=1 --global-option=x",
            "requests; python_version<'3' --global-option=x",
            "requests # comment",
            "./local",
            "../local",
            "/abs",
            "dir/pkg",
            "dir\\pkg",
            "file:///etc/passwd",
            "file:x",
            "name @ https://evil.example/x.whl",
            "name@git+https://evil.example",
            "https://evil.example/x.whl",
            "git+https://evil.example",
            "pkg-1.0-py3-none-any.whl",
            "pkg.tar.gz",
            "${TOKEN}",
            "a==${TOKEN}",
            "a==$(id)",
            "a;b;c",
            "a;",
            "a; python_version",
            "a; python_version < ",
            "a; (python_version < '3'",
            "a; python_version < '3')",
            "a; not python_version",
            "a; x == '${HOME}'",
            "a[b",
            "a[b c]",
            "a[,]",
            "a>=",
            "a>1,",
            "a 1.0",
            "a=1",
            "_a",
            "a-",
            "rеquests",
        ] {
            assert!(check_requirement(bad, None).is_err(), "{bad:?}");
        }
        assert!(check_requirement(&"a".repeat(2000), None).is_err());
        let deep = format!("a; {}", "(".repeat(900));
        assert!(check_requirement(&deep, None).is_err());
    }
}
