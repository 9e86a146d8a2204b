//! From a request to an environment, once per set however many ask at once.

use crate::build_cell::CellInstaller;
use crate::cache::make;
use crate::entry::Meta;
use crate::key::Key;
use crate::lock::Lock;
use crate::seal::seal;
use crate::workspace::{Workspace, remove_tree};
use crate::{Cache, DepsError, DepsRequest, Environment, Progress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skillcell_core::Digest;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Fills the workspace's `site`; a test has one that needs no cell.
pub(crate) trait Installer {
    /// Gives the installer's name.
    fn install(
        &self,
        request: &DepsRequest<'_>,
        to: &Workspace,
        progress: &dyn Progress,
    ) -> Result<&'static str, DepsError>;
}

/// The environment for a request, installed if it isn't there. The process must be single-threaded:
/// an install makes a cell.
pub fn ensure(
    cache: &Cache,
    request: &DepsRequest<'_>,
    progress: &dyn Progress,
) -> Result<Environment, DepsError> {
    ensure_with(&CellInstaller, cache, request, progress)
}

pub(crate) fn ensure_with(
    installer: &dyn Installer,
    cache: &Cache,
    request: &DepsRequest<'_>,
    progress: &dyn Progress,
) -> Result<Environment, DepsError> {
    let key = Key::of(request);
    let digest = key.digest();
    if let Some(found) = cache.find(&digest)? {
        return Ok(found);
    }
    let cache = cache.prepare()?;
    let _turn = wait_for_turn(&cache, &digest, request, progress)?;
    // Somebody may have installed it while we waited.
    if let Some(found) = cache.find(&digest)? {
        return Ok(found);
    }
    let workspace = Workspace::create(&cache)?;
    let name = installer.install(request, &workspace, progress)?;
    progress.stage("checking the installed packages");
    remove_tree(&workspace.work());
    let contents = seal(&workspace.site())?;
    let meta = Meta::new(&key, name, contents.size, contents.files);
    publish(&cache, &workspace, &digest, &meta)?;
    let place = cache.envs().join(digest.hex());
    let mut found = cache
        .find(&digest)?
        .ok_or_else(|| DepsError::io("opening", &place)(std::io::ErrorKind::NotFound.into()))?;
    found.fresh = true;
    Ok(found)
}

fn wait_for_turn(
    cache: &Cache,
    key: &Digest,
    request: &DepsRequest<'_>,
    progress: &dyn Progress,
) -> Result<Lock, DepsError> {
    let path = cache.locks().join(format!("{}.lock", key.hex()));
    let mut told = false;
    loop {
        if let Some(lock) = Lock::attempt(&path)? {
            return Ok(lock);
        }
        if !told {
            progress.stage("waiting for another install of the same packages");
            told = true;
        }
        pause(request)?;
    }
}

fn pause(request: &DepsRequest<'_>) -> Result<(), DepsError> {
    let Some(interrupt) = request.interrupt else {
        std::thread::sleep(Duration::from_millis(50));
        return Ok(());
    };
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    match poll(
        &mut [PollFd::new(&interrupt, PollFlags::IN)],
        Some(&patience),
    ) {
        Ok(1..) => Err(DepsError::Interrupted),
        _ => Ok(()),
    }
}

/// Puts a finished environment in its place, whole or not at all, even if the machine stops here.
fn publish(
    cache: &Cache,
    workspace: &Workspace,
    key: &Digest,
    meta: &Meta,
) -> Result<(), DepsError> {
    let env = workspace.env();
    // Only now: until here the installer's id could have written it.
    let owner = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    std::os::unix::fs::lchown(&env, Some(owner.0), Some(owner.1))
        .map_err(DepsError::io("taking over", &env))?;
    fs::set_permissions(&env, Permissions::from_mode(0o755))
        .map_err(DepsError::io("taking over", &env))?;
    keep_only_site(&env)?;
    write_meta(&env.join("meta.json"), meta)?;
    let folder = File::open(&env).map_err(DepsError::io("opening", &env))?;
    rustix::fs::syncfs(&folder).map_err(|e| DepsError::io("writing", &env)(e.into()))?;

    let place = cache.envs().join(key.hex());
    if fs::symlink_metadata(&place).is_ok() {
        // Without a valid marker, or we would not be here.
        fs::rename(&place, workspace.rubbish()).map_err(DepsError::io("replacing", &place))?;
    }
    make(&cache.envs(), 0o755)?;
    fs::rename(&env, &place).map_err(DepsError::io("making", &place))?;
    let envs = cache.envs();
    File::open(&envs)
        .and_then(|f| f.sync_all())
        .map_err(DepsError::io("writing", &envs))
}

/// The installer could write beside `site` as well.
fn keep_only_site(env: &Path) -> Result<(), DepsError> {
    for entry in fs::read_dir(env).map_err(DepsError::io("listing", env))? {
        let entry = entry.map_err(DepsError::io("listing", env))?;
        if entry.file_name() == "site" {
            continue;
        }
        let path = entry.path();
        match entry
            .file_type()
            .map_err(DepsError::io("listing", env))?
            .is_dir()
        {
            true => remove_tree(&path),
            false => fs::remove_file(&path).map_err(DepsError::io("removing", &path))?,
        }
    }
    Ok(())
}

fn write_meta(path: &Path, meta: &Meta) -> Result<(), DepsError> {
    let text =
        serde_json::to_vec_pretty(meta).map_err(|e| DepsError::io("writing", path)(e.into()))?;
    let error = || DepsError::io("writing", path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)
        .map_err(error())?;
    file.write_all(&text).map_err(error())?;
    file.set_permissions(Permissions::from_mode(0o644))
        .map_err(error())?;
    file.sync_all().map_err(error())
}

#[cfg(test)]
#[path = "ensure_tests.rs"]
mod tests;
