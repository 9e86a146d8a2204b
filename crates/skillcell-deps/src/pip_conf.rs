//! As much of pip's configuration as names an index: `uv` doesn't read it, and a user who has set
//! up an index for pip means it for every installer.

use std::collections::BTreeMap;

/// Options by name, `-` for `_`. `[install]` is stronger than `[global]`.
pub(crate) fn parse(text: &str) -> BTreeMap<String, String> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = String::new();
    let mut last: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let options = sections.entry(section.clone()).or_default();
        // A line that is moved in goes on with the value above.
        if line.starts_with([' ', '\t'])
            && let Some(value) = last.as_ref().and_then(|name| options.get_mut(name))
        {
            value.push(' ');
            value.push_str(trimmed);
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            section = name.trim().to_ascii_lowercase();
            last = None;
            continue;
        }
        if let Some((name, value)) = trimmed.split_once(['=', ':']) {
            let name = option_name(name);
            options.insert(name.clone(), value.trim().to_owned());
            last = Some(name);
        }
    }
    let mut merged = sections.remove("global").unwrap_or_default();
    merged.extend(sections.remove("install").unwrap_or_default());
    merged
}

/// `Index_URL ` and `--index-url` are `index-url`.
pub(crate) fn option_name(text: &str) -> String {
    text.trim()
        .trim_start_matches('-')
        .to_ascii_lowercase()
        .replace('_', "-")
}

/// pip's own idea of true.
pub(crate) fn is_true(value: &str) -> bool {
    matches!(
        value.trim().to_ascii_lowercase().as_str(),
        "1" | "true" | "yes" | "on" | "y" | "t"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_sections_and_continued_values_are_read() {
        let conf = parse(
            "# mine\n[global]\nindex-url = https://a.example/simple\nextra_index_url =\n    https://b.example\n    https://c.example\n\
             no-index: yes\n[install]\nindex-url=https://d.example\n[freeze]\nindex-url = x\n",
        );
        assert_eq!(conf["index-url"], "https://d.example");
        assert_eq!(conf["extra-index-url"].split_ascii_whitespace().count(), 2);
        assert!(is_true(&conf["no-index"]));
    }

    #[test]
    fn garbage_is_no_setting() {
        assert!(parse("[[[\n=\n  x\n\u{0}").values().all(String::is_empty));
    }
}
