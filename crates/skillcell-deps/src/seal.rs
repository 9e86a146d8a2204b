//! What an installer left is looked at before anything uses it, when nothing of it runs any more.
//! Packages are folders and files; whatever else is there was put by somebody who wants out.

use crate::DepsError;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

/// What is in an environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) size: u64,
    pub(crate) files: u64,
}

/// Checks the tree, gives it to the caller, and takes everybody else's right to write.
pub(crate) fn seal(site: &Path) -> Result<Contents, DepsError> {
    // The installer could have put a link in its place, which must not be followed.
    if !fs::symlink_metadata(site)
        .map_err(DepsError::io("opening", site))?
        .is_dir()
    {
        return Err(DepsError::Hostile {
            path: PathBuf::from("site"),
            problem: "isn't a folder any more",
        });
    }
    let top = fs::canonicalize(site).map_err(DepsError::io("opening", site))?;
    let owner = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let mut contents = Contents::default();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        // First, or a folder without rights could not be listed by an ordinary owner.
        take(&folder, owner, 0o755)?;
        for entry in fs::read_dir(&folder).map_err(DepsError::io("listing", &folder))? {
            let path = entry.map_err(DepsError::io("listing", &folder))?.path();
            let meta = fs::symlink_metadata(&path).map_err(DepsError::io("opening", &path))?;
            if let Some(problem) = problem(&top, &path, &meta) {
                let path = path.strip_prefix(&top).unwrap_or(&path).to_owned();
                return Err(DepsError::Hostile {
                    path: clean(&path),
                    problem,
                });
            }
            contents.files += 1;
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_symlink() {
                lchown(&path, Some(owner.0), Some(owner.1))
                    .map_err(DepsError::io("taking over", &path))?;
            } else {
                contents.size += meta.len();
                take(
                    &path,
                    owner,
                    if meta.mode() & 0o111 != 0 {
                        0o755
                    } else {
                        0o644
                    },
                )?;
            }
        }
    }
    Ok(contents)
}

fn take(path: &Path, (uid, gid): (u32, u32), mode: u32) -> Result<(), DepsError> {
    lchown(path, Some(uid), Some(gid)).map_err(DepsError::io("taking over", path))?;
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(DepsError::io("taking over", path))
}

fn problem(top: &Path, path: &Path, meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_symlink() {
        let leads_inside = fs::read_link(path).is_ok_and(|to| to.is_relative())
            && fs::canonicalize(path).is_ok_and(|to| to.starts_with(top));
        return (!leads_inside).then_some("is a link that leads out of the environment");
    }
    if kind.is_block_device() || kind.is_char_device() {
        return Some("is a device");
    }
    if kind.is_socket() || kind.is_fifo() {
        return Some("is a socket or pipe");
    }
    if kind.is_file() && meta.mode() & 0o6000 != 0 {
        return Some("would run with another's rights (setuid or setgid)");
    }
    if kind.is_file() && meta.nlink() != 1 {
        return Some("has a second name outside the environment");
    }
    None
}

/// Names were chosen by a stranger and end up on terminals.
fn clean(path: &Path) -> PathBuf {
    PathBuf::from(crate::output::printable(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn site() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("pkg")).unwrap();
        fs::write(folder.path().join("pkg/a.py"), "x = 1\n").unwrap();
        folder
    }

    #[track_caller]
    fn refused(folder: &tempfile::TempDir) {
        assert!(matches!(
            seal(folder.path()),
            Err(DepsError::Hostile { .. })
        ));
    }

    #[test]
    fn an_ordinary_tree_is_counted_and_closed_to_other_writers() {
        let folder = site();
        let file = folder.path().join("pkg/a.py");
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        symlink("a.py", folder.path().join("pkg/b.py")).unwrap();
        assert_eq!(seal(folder.path()).unwrap(), Contents { size: 6, files: 3 });
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn links_that_lead_out_are_refused() {
        for to in ["/etc/passwd", "../..", "../../x", "nowhere", "/"] {
            let folder = site();
            symlink(to, folder.path().join("pkg/link")).unwrap();
            refused(&folder);
        }
    }

    #[test]
    fn a_link_that_leads_out_through_another_link_is_refused() {
        let folder = site();
        symlink("..", folder.path().join("pkg/up")).unwrap();
        symlink("up/../..", folder.path().join("pkg/out")).unwrap();
        refused(&folder);
    }

    #[test]
    fn a_link_in_place_of_the_environment_is_refused_and_not_followed() {
        let (folder, victim) = (site(), site());
        fs::set_permissions(victim.path(), Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        symlink(victim.path(), &link).unwrap();
        assert!(matches!(seal(&link), Err(DepsError::Hostile { .. })));
        assert_eq!(fs::metadata(victim.path()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn setuid_bits_hard_links_and_sockets_are_refused() {
        let folder = site();
        fs::set_permissions(
            folder.path().join("pkg/a.py"),
            Permissions::from_mode(0o4755),
        )
        .unwrap();
        refused(&folder);

        let (folder, other) = (site(), tempfile::NamedTempFile::new().unwrap());
        fs::hard_link(other.path(), folder.path().join("pkg/hard")).unwrap();
        refused(&folder);

        let folder = site();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap();
        refused(&folder);
    }
}
