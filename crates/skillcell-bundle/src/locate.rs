//! From what a user typed to a folder.
//!
//! An existing path wins over an id, so that a folder in front of the user is never passed over for
//! one that is installed somewhere.

use crate::BundleError;
use crate::site_packages::{bundled_skills, site_packages_of_prefix};
use skillcell_core::SkillId;
use skillcell_manifest::edit_distance;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Names looked at for a suggestion.
const MAX_CANDIDATES: usize = 2000;

/// Folders in which `category/name` is looked up, first match first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPath {
    pub folders: Vec<PathBuf>,
}

impl SearchPath {
    /// `SKILLCELL_SKILL_PATH`, `./skills`, and the skills of an installed `skillware`: in
    /// `site_packages`, in the active virtualenv, in the user's and in the system's packages.
    pub fn from_env(site_packages: &[PathBuf]) -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let mut prefixes: Vec<PathBuf> = Vec::new();
        prefixes.extend(variable("VIRTUAL_ENV").map(PathBuf::from));
        prefixes.extend(variable("HOME").map(|home| PathBuf::from(home).join(".local")));
        prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
        Self::new(variable("SKILLCELL_SKILL_PATH"), site_packages, &prefixes)
    }

    fn new(skill_path: Option<OsString>, site_packages: &[PathBuf], prefixes: &[PathBuf]) -> Self {
        let mut folders: Vec<PathBuf> = Vec::new();
        if let Some(path) = skill_path {
            folders.extend(std::env::split_paths(&path).filter(|p| !p.as_os_str().is_empty()));
        }
        folders.push(PathBuf::from("./skills"));
        let installed = prefixes
            .iter()
            .flat_map(|prefix| site_packages_of_prefix(prefix));
        let packages = site_packages.iter().cloned().chain(installed);
        folders.extend(packages.filter_map(|packages| bundled_skills(&packages)));
        SearchPath { folders }
    }
}

/// The folder of the skill that `reference` means: a path (a folder, or a manifest in it), or an id.
pub fn locate(reference: &str, search: &SearchPath) -> Result<PathBuf, BundleError> {
    let path = Path::new(reference);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(path.to_owned()),
        Ok(_) => {
            let known = ["manifest.yaml", "SKILL.md", "skill.py"];
            return match (path.file_name().and_then(|n| n.to_str()), path.parent()) {
                (Some(name), Some(parent)) if known.contains(&name) => {
                    Ok(if parent.as_os_str().is_empty() {
                        PathBuf::from(".")
                    } else {
                        parent.to_owned()
                    })
                }
                _ => Err(BundleError::NotASkill {
                    path: path.to_owned(),
                }),
            };
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        // No path can hold a NUL or be this long, and no id either.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::InvalidFilename
            ) => {}
        Err(error) => {
            return Err(BundleError::Root {
                path: path.to_owned(),
                error,
            });
        }
    }
    if let Ok(id) = SkillId::parse(reference) {
        let found = search
            .folders
            .iter()
            .map(|folder| folder.join(id.as_str()))
            .find(|dir| dir.is_dir());
        if let Some(dir) = found {
            return Ok(dir);
        }
    }
    Err(BundleError::NotFound {
        reference: reference.to_owned(),
        looked: search.folders.clone(),
        similar: similar(reference, search),
    })
}

/// Up to three ids that are nearly the one that was asked for.
fn similar(reference: &str, search: &SearchPath) -> Vec<String> {
    if reference.len() > 256 {
        return Vec::new();
    }
    let wanted = reference.to_lowercase();
    let last = |id: &str| id.rsplit('/').next().unwrap_or_default().to_owned();
    let mut close: Vec<(usize, String)> = Vec::new();
    for id in ids(search) {
        let distance = if last(&id) == last(&wanted) {
            // The right name in the wrong category, or without one.
            1
        } else {
            edit_distance(&wanted, &id.to_lowercase())
                .min(edit_distance(&last(&wanted), &last(&id)))
        };
        if distance <= 1 + wanted.len() / 6 && !close.iter().any(|(_, known)| *known == id) {
            close.push((distance, id));
        }
    }
    close.sort();
    close.into_iter().take(3).map(|(_, id)| id).collect()
}

/// Ids of the skills in the search path, at one and two levels.
fn ids(search: &SearchPath) -> Vec<String> {
    found(search).into_iter().map(|(id, _)| id).collect()
}

/// The skills of the search path by their ids, each from the first folder that has it.
pub fn list(search: &SearchPath) -> BTreeMap<String, PathBuf> {
    let mut skills = BTreeMap::new();
    for (id, folder) in found(search) {
        if SkillId::parse(&id).is_ok() {
            skills.entry(id).or_insert(folder);
        }
    }
    skills
}

fn found(search: &SearchPath) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for folder in &search.folders {
        for (name, path) in folders_in(folder) {
            if is_skill(&path) {
                found.push((name, path));
                continue;
            }
            let below = folders_in(&path)
                .into_iter()
                .filter(|(_, path)| is_skill(path));
            found.extend(below.map(|(skill, path)| (format!("{name}/{skill}"), path)));
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

fn folders_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_CANDIDATES);
    entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

fn is_skill(path: &Path) -> bool {
    path.join("manifest.yaml").exists() || path.join("SKILL.md").exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillcell_core::Reason;
    use std::fs::{create_dir_all, write};

    fn skills() -> (tempfile::TempDir, SearchPath) {
        let dir = tempfile::tempdir().unwrap();
        for id in [
            "office/pdf_form_filler",
            "finance/wallet_screening",
            "hello",
        ] {
            create_dir_all(dir.path().join(id)).unwrap();
            write(dir.path().join(id).join("manifest.yaml"), "name: x\n").unwrap();
        }
        let search = SearchPath {
            folders: vec![dir.path().join("missing"), dir.path().to_owned()],
        };
        (dir, search)
    }

    #[test]
    fn a_path_an_id_and_a_manifest_lead_to_the_folder() {
        let (dir, search) = skills();
        let folder = dir.path().join("office/pdf_form_filler");
        assert_eq!(locate("office/pdf_form_filler", &search).unwrap(), folder);
        assert_eq!(locate(folder.to_str().unwrap(), &search).unwrap(), folder);
        let manifest = folder.join("manifest.yaml");
        assert_eq!(locate(manifest.to_str().unwrap(), &search).unwrap(), folder);
        assert_eq!(locate("hello", &search).unwrap(), dir.path().join("hello"));
    }

    #[test]
    fn what_is_not_found_says_where_it_was_sought_and_what_is_close() {
        let (dir, search) = skills();
        for (asked, want) in [
            ("office/pdf_form_fillr", "`office/pdf_form_filler`"),
            ("pdf_form_filler", "`office/pdf_form_filler`"),
            ("finance/wallet-screening", "`finance/wallet_screening`"),
            ("helo", "`hello`"),
        ] {
            let error = locate(asked, &search).unwrap_err();
            assert_eq!(error.reason(), Reason::SkillNotFound);
            assert!(
                error
                    .to_string()
                    .contains(&dir.path().display().to_string()),
                "{error}"
            );
            assert!(
                error.hint().unwrap().contains(want),
                "{asked}: {:?}",
                error.hint()
            );
        }
        let error = locate("nothing/alike_at_all", &search).unwrap_err();
        assert!(error.hint().unwrap().contains("SKILLCELL_SKILL_PATH"));
    }

    #[test]
    fn an_id_never_leads_out_of_the_search_path() {
        let (dir, search) = skills();
        let below = SearchPath {
            folders: vec![dir.path().join("office")],
        };
        for reference in [
            "../hello-not-here",
            "a/../../hello",
            "",
            "\0",
            "x\ny",
            &"x".repeat(10_000),
        ] {
            assert!(locate(reference, &below).is_err(), "{reference:?}");
        }
        assert!(locate("pdf_form_filler", &below).is_ok());
        drop(search);
    }

    #[test]
    fn other_files_and_link_loops_are_clear_errors() {
        let (dir, search) = skills();
        let file = dir.path().join("notes.txt");
        write(&file, "").unwrap();
        assert!(matches!(
            locate(file.to_str().unwrap(), &search),
            Err(BundleError::NotASkill { .. })
        ));
        let looped = dir.path().join("loop");
        std::os::unix::fs::symlink("loop", &looped).unwrap();
        let error = locate(looped.to_str().unwrap(), &search).unwrap_err();
        assert!(matches!(error, BundleError::Root { .. }), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn the_search_path_goes_from_the_users_choice_to_what_is_installed() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("lib/python3.12/site-packages");
        create_dir_all(packages.join("skills")).unwrap();
        create_dir_all(packages.join("skillware")).unwrap();
        let search = SearchPath::new(Some("/a::/b".into()), &[], &[dir.path().to_owned()]);
        let want = [
            "/a".into(),
            "/b".into(),
            "./skills".into(),
            packages.join("skills"),
        ];
        assert_eq!(search.folders, want);
    }
}
