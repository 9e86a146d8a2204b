//! Files of the host that the user's index settings name: certificates, folders of wheels, an index
//! on disk, constraints. They are shown at their own path, because that is how they are named.

use crate::settings::Settings;
use skillcell_linux::system;
use std::path::{Path, PathBuf};

/// Each one exists, is absolute, and isn't part of the system that every cell sees.
pub(crate) fn named_files(settings: &Settings) -> Vec<PathBuf> {
    let files = [
        "cert",
        "client-cert",
        "ssl-cert-file",
        "ssl-cert-dir",
        "ssl-client-cert",
        "requests-ca-bundle",
        "curl-ca-bundle",
    ];
    let lists = [
        "find-links",
        "index-url",
        "extra-index-url",
        "index",
        "default-index",
        "constraint",
    ];
    let mut options: Vec<(String, String)> = settings.pip_options().into_iter().collect();
    for (name, value) in &settings.env {
        let name = name.strip_prefix("UV_").unwrap_or(name);
        options.push((name.to_ascii_lowercase().replace('_', "-"), value.clone()));
    }
    let mut named = Vec::new();
    for (option, value) in &options {
        if files.contains(&option.as_str()) {
            named.push(PathBuf::from(value));
        } else if lists.contains(&option.as_str()) {
            named.extend(words(value).filter_map(local_path));
        }
    }
    named.retain(|path| path.is_absolute() && path.exists() && shown_separately(path));
    named.sort();
    named.dedup();
    // A folder shows what is in it.
    let all = named.clone();
    named.retain(|path| {
        !all.iter()
            .any(|other| other != path && path.starts_with(other))
    });
    named
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value
        .split([' ', '\t', '\n', ','])
        .filter(|word| !word.is_empty())
}

/// A path, or a `file:` address; an index may have a name before it (`name=file:///…`).
fn local_path(word: &str) -> Option<PathBuf> {
    let word = word.split_once('=').map_or(word, |(_, address)| address);
    match word.strip_prefix("file://") {
        Some(path) => Some(PathBuf::from(path)),
        None if word.starts_with('/') => Some(PathBuf::from(word)),
        None => None,
    }
}

fn shown_separately(path: &Path) -> bool {
    // The kernel's own and the root itself are never shown, whoever names them.
    let never = ["/proc", "/sys", "/dev", "/run"]
        .iter()
        .any(|top| path.starts_with(top))
        || path.parent().is_none();
    !never && !system::is_system(path) && !system::shows(path)
}

/// Relative folders of wheels, as the caller means them.
pub(crate) fn absolute_links(value: &str) -> String {
    let by = if value.contains(',') { "," } else { " " };
    let absolute = |word: &str| match std::path::absolute(word) {
        Ok(path) if !word.contains("://") && path.exists() => path.to_string_lossy().into_owned(),
        _ => word.to_owned(),
    };
    words(value).map(absolute).collect::<Vec<_>>().join(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str, value: String) -> Settings {
        Settings {
            env: [(name.to_owned(), value)].into(),
            ..Settings::default()
        }
    }

    #[test]
    fn certificates_and_folders_of_wheels_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for (name, value) in [
            ("PIP_CERT", path.to_owned()),
            ("SSL_CERT_DIR", path.to_owned()),
            ("PIP_FIND_LINKS", format!("https://x.example {path}")),
            ("UV_FIND_LINKS", format!("https://x.example,{path}")),
            ("PIP_INDEX_URL", format!("file://{path}")),
            ("UV_INDEX", format!("mine=file://{path}")),
        ] {
            assert_eq!(
                named_files(&settings(name, value)),
                [folder.path()],
                "{name}"
            );
        }
    }

    #[test]
    fn the_system_the_kernel_and_the_root_are_not_shown_by_name() {
        for path in [
            "/",
            "/usr/bin",
            "/proc/self",
            "/dev",
            "/run",
            "/etc/ssl/certs",
            "/nonexistent",
            "relative",
        ] {
            assert!(
                named_files(&settings("PIP_FIND_LINKS", path.into())).is_empty(),
                "{path}"
            );
        }
    }
}
