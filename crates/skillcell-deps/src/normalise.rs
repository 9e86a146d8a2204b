//! One spelling per requirement, so that equal sets share an environment. What isn't understood
//! stays as it is: the cost is a second environment, never a wrong one.

/// Sorted, each once.
pub(crate) fn set(requirements: &[String]) -> Vec<String> {
    let mut all: Vec<String> = requirements.iter().map(|r| requirement(r)).collect();
    all.sort();
    all.dedup();
    all
}

fn requirement(text: &str) -> String {
    let (package, marker) = match text.split_once(';') {
        Some((package, marker)) => (package, Some(marker)),
        None => (text, None),
    };
    let package = package.trim();
    let end = package.find(|c: char| !is_name(c)).unwrap_or(package.len());
    let (name, rest) = package.split_at(end);
    let mut out = self::name(name);
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        Some((extras, rest)) => {
            let extras = sorted(extras, self::name);
            if !extras.is_empty() {
                out.push_str(&format!("[{extras}]"));
            }
            rest
        }
        None => rest,
    };
    let versions = rest.trim();
    let versions = versions
        .strip_prefix('(')
        .and_then(|v| v.strip_suffix(')'))
        .unwrap_or(versions);
    out.push_str(&sorted(versions, |clause| {
        clause.split_ascii_whitespace().collect()
    }));
    if let Some(marker) = marker {
        let words: Vec<&str> = marker.split_ascii_whitespace().collect();
        out.push_str(&format!("; {}", words.join(" ")));
    }
    out
}

fn sorted(list: &str, each: impl Fn(&str) -> String) -> String {
    let mut parts: Vec<String> = list
        .split(',')
        .map(|part| each(part.trim()))
        .filter(|part| !part.is_empty())
        .collect();
    parts.sort();
    parts.dedup();
    parts.join(",")
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The name that a requirement begins with, in the index's spelling.
pub(crate) fn name_of(requirement: &str) -> String {
    let text = requirement.trim();
    let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
    name(&text[..end])
}

/// Runs of `-`, `_` and `.` are one `-`, and case doesn't matter.
fn name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            other => out.push(other.to_ascii_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_requirement_are_equal() {
        for (left, right) in [
            ("Six", "six"),
            ("zope.interface", "Zope__Interface"),
            ("a >= 1, <2", "a<2,>=1"),
            ("a (>=1)", "a>=1"),
            ("a[y,X]>=1", "A [x, y] >= 1"),
            (
                "a ;  python_version  < \"3.12\"",
                "a; python_version < \"3.12\"",
            ),
            ("a[]", "a"),
        ] {
            assert_eq!(requirement(left), requirement(right), "{left} {right}");
        }
    }

    #[test]
    fn different_requirements_stay_different() {
        for (left, right) in [
            ("a==1.0", "a==1.1"),
            ("a", "b"),
            ("a[x]", "a"),
            ("a; sys_platform == \"linux\"", "a"),
            ("a===1.0A", "a===1.0a"),
        ] {
            assert_ne!(requirement(left), requirement(right), "{left} {right}");
        }
    }
}
