//! Where environments are kept: `envs/<digest>/{site,meta.json}`, with `tmp/` for those in the
//! making and `locks/` for sets that somebody installs right now.

use crate::entry::Meta;
use crate::key::{FORMAT, Key};
use crate::{DepsError, DepsRequest, Entry};
use rustix::fs::{FlockOperation, OFlags, flock};
use skillcell_core::Digest;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files that tell an environment's age are touched at most this often.
const USE_PRECISION: Duration = Duration::from_secs(3600);

/// A folder of environments.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// Installed packages. While it lives, the environment isn't pruned.
#[derive(Debug)]
pub struct Environment {
    /// The folder to put on `sys.path`; absolute and without symlinks.
    pub site: PathBuf,
    pub key: Digest,
    /// Installed by this very call.
    pub fresh: bool,
    _lease: File,
}

impl Cache {
    /// `SKILLCELL_CACHE_DIR`; else for root the system's cache, which the unprivileged id of a cell
    /// can reach; else the user's own.
    pub fn default_location() -> Result<Cache, DepsError> {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        if let Some(path) = absolute("SKILLCELL_CACHE_DIR") {
            return Ok(Cache::at(&path));
        }
        if rustix::process::geteuid().is_root() {
            return Ok(Cache::at(Path::new("/var/cache/skillcell")));
        }
        let home = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Ok(Cache::at(&home.ok_or(DepsError::NoHome)?.join("skillcell")))
    }

    /// A cache at a place of the caller's choice. Nothing is made before the first install.
    pub fn at(path: &Path) -> Cache {
        Cache {
            root: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
        }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The environment for a request if it is there: no walk, no lock to wait for.
    pub fn lookup(&self, request: &DepsRequest<'_>) -> Result<Option<Environment>, DepsError> {
        self.find(&Key::of(request).digest())
    }

    pub(crate) fn find(&self, key: &Digest) -> Result<Option<Environment>, DepsError> {
        let folder = self.envs().join(key.hex());
        let Some((lease, used)) = open_meta(&folder.join("meta.json"))? else {
            return Ok(None);
        };
        self.check_trust()?;
        // Held by somebody who prunes it right now, or pruned since it was opened.
        let held = flock(&lease, FlockOperation::NonBlockingLockShared).is_ok();
        if !held || lease.metadata().is_ok_and(|m| m.nlink() == 0) {
            return Ok(None);
        }
        touch(&lease, used);
        Ok(Some(Environment {
            site: folder.join("site"),
            key: key.clone(),
            fresh: false,
            _lease: lease,
        }))
    }

    /// All environments, latest use first.
    pub fn list(&self) -> Result<Vec<Entry>, DepsError> {
        let envs = self.envs();
        let read = match fs::read_dir(&envs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(DepsError::io("listing", &envs))?,
        };
        self.check_trust()?;
        let mut entries = Vec::new();
        for item in read {
            let item = item.map_err(DepsError::io("listing", &envs))?;
            if let Some(entry) = read_entry(&item.path())? {
                entries.push(entry);
            }
        }
        entries.sort_by(|a, b| {
            b.last_used
                .cmp(&a.last_used)
                .then_with(|| a.key.as_str().cmp(b.key.as_str()))
        });
        Ok(entries)
    }

    /// Makes the folders, for an install.
    pub(crate) fn prepare(&self) -> Result<Cache, DepsError> {
        // The cells of a root caller have an id of their own, which must get this far at least.
        let (top, inner) = if rustix::process::geteuid().is_root() {
            (0o755, 0o711)
        } else {
            (0o700, 0o700)
        };
        if let Some(parent) = self.root.parent() {
            fs::create_dir_all(parent).map_err(DepsError::io("making", parent))?;
        }
        make(&self.root, top)?;
        let root = fs::canonicalize(&self.root).map_err(DepsError::io("opening", &self.root))?;
        let cache = Cache { root };
        cache.check_trust()?;
        make(&cache.envs(), top)?;
        make(&cache.tmp(), inner)?;
        make(&cache.locks(), 0o700)?;
        Ok(cache)
    }

    /// Whoever may write here could plant packages.
    fn check_trust(&self) -> Result<(), DepsError> {
        let meta =
            fs::symlink_metadata(&self.root).map_err(DepsError::io("opening", &self.root))?;
        let own = meta.uid() == rustix::process::geteuid().as_raw();
        let problem = if !meta.is_dir() {
            "it isn't a folder"
        } else if !own {
            "it belongs to another user"
        } else if meta.mode() & 0o022 != 0 {
            "other users may write to it"
        } else {
            return Ok(());
        };
        Err(DepsError::Untrusted {
            path: self.root.clone(),
            problem,
        })
    }

    pub(crate) fn envs(&self) -> PathBuf {
        self.root.join("envs")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }
}

/// Makes a folder with exactly this mode, whatever the umask; one that is there stays as it is.
pub(crate) fn make(path: &Path, mode: u32) -> Result<(), DepsError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(DepsError::io("making", path)(error)),
    }
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(DepsError::io("making", path))
}

fn open_meta(path: &Path) -> Result<Option<(File, SystemTime)>, DepsError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
    {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        other => other.map_err(DepsError::io("opening", path))?,
    };
    let used = file
        .metadata()
        .and_then(|m| m.modified())
        .map_err(DepsError::io("opening", path))?;
    Ok(Some((file, used)))
}

fn touch(file: &File, used: SystemTime) {
    let now = SystemTime::now();
    if now
        .duration_since(used)
        .is_ok_and(|age| age > USE_PRECISION)
    {
        // A cache that can't be written can still be used.
        file.set_times(FileTimes::new().set_modified(now))
            .unwrap_or(());
    }
}

/// `None` for what isn't an environment of this format.
pub(crate) fn read_entry(folder: &Path) -> Result<Option<Entry>, DepsError> {
    let name = folder
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default();
    let Some(key) = Digest::parse(&format!("sha256:{name}")) else {
        return Ok(None);
    };
    let Some((file, used)) = open_meta(&folder.join("meta.json"))? else {
        return Ok(None);
    };
    let meta: Meta = match serde_json::from_reader(io::BufReader::new(file)) {
        Ok(meta) => meta,
        Err(_) => return Ok(None),
    };
    Ok((meta.format == FORMAT).then(|| Entry::new(key, folder.to_owned(), meta, used)))
}
