//! Where Python packages are installed, found by looking: starting an interpreter to ask it would
//! cost more than a whole call.

use std::path::{Path, PathBuf};

/// The package folders of a Python prefix (a virtualenv, `/usr`), newest Python first.
pub fn site_packages_of_prefix(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        let lib = prefix.join(lib);
        let mut versions: Vec<(u32, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&lib).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let minor = name.to_str().and_then(|n| n.strip_prefix("python3."));
            if let Some(minor) = minor.and_then(|minor| minor.trim_end_matches('t').parse().ok()) {
                versions.push((minor, entry.path()));
            }
        }
        versions.sort_by(|a, b| b.cmp(a));
        for (_, python) in versions {
            found.extend(["site-packages", "dist-packages"].map(|packages| python.join(packages)));
        }
        found.push(lib.join("python3/dist-packages"));
    }
    found.retain(|folder| folder.is_dir());
    let mut distinct: Vec<PathBuf> = Vec::new();
    for folder in found {
        // lib64 is often a link to lib.
        let real = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        if !distinct
            .iter()
            .any(|d| std::fs::canonicalize(d).is_ok_and(|d| d == real))
        {
            distinct.push(folder);
        }
    }
    distinct
}

/// The `skills` folder of an installed `skillware`. A package that is merely called `skills` isn't
/// it.
pub(crate) fn bundled_skills(site_packages: &Path) -> Option<PathBuf> {
    let skills = site_packages.join("skills");
    (site_packages.join("skillware").is_dir() && skills.is_dir()).then_some(skills)
}

/// The version of `skillware` beside whose skills the bundle lies.
pub(crate) fn skillware_version(bundle: &Path) -> Option<String> {
    let skills = bundle.ancestors().find(|folder| {
        folder.file_name().is_some_and(|name| name == "skills")
            && folder
                .parent()
                .and_then(Path::file_name)
                .is_some_and(|parent| parent == "site-packages" || parent == "dist-packages")
    })?;
    for entry in std::fs::read_dir(skills.parent()?).ok()?.flatten() {
        let name = entry.file_name();
        let version = name
            .to_str()
            .and_then(|n| n.strip_prefix("skillware-"))
            .and_then(|n| n.strip_suffix(".dist-info"));
        // It goes into a requirement later.
        let valid = |v: &str| {
            v.starts_with(|c: char| c.is_ascii_digit())
                && v.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b".+!_-".contains(&b))
        };
        if let Some(version) = version.filter(|v| valid(v)) {
            return Some(version.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::create_dir_all;

    #[test]
    fn newer_pythons_come_first_and_links_count_once() {
        let dir = tempfile::tempdir().unwrap();
        for python in ["python3.9", "python3.11"] {
            create_dir_all(dir.path().join("lib").join(python).join("site-packages")).unwrap();
        }
        std::os::unix::fs::symlink("lib", dir.path().join("lib64")).unwrap();
        let found = site_packages_of_prefix(dir.path());
        let want = [
            "lib/python3.11/site-packages",
            "lib/python3.9/site-packages",
        ];
        assert_eq!(found, want.map(|p| dir.path().join(p)));
    }

    #[test]
    fn the_version_is_that_of_the_package_beside_the_skills() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("lib/python3.11/site-packages");
        let bundle = packages.join("skills/office/pdf");
        create_dir_all(&bundle).unwrap();
        assert_eq!(skillware_version(&bundle), None);
        create_dir_all(packages.join("skillware-0.6.0.dist-info")).unwrap();
        assert_eq!(skillware_version(&bundle).as_deref(), Some("0.6.0"));
        assert_eq!(skillware_version(&packages.join("other/pdf")), None);
        assert_eq!(bundled_skills(&packages), None);
        create_dir_all(packages.join("skillware")).unwrap();
        assert_eq!(bundled_skills(&packages), Some(packages.join("skills")));
    }
}
