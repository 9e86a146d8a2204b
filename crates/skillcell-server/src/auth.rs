//! Bearer tokens. Only their hashes are kept, so that who reads the file can't call.
//!
//! A token has 256 random bits, so a plain hash is as good as a slow one. The file is read again
//! when it has changed: a line taken out is a token that no longer counts, at once. A file that
//! can't be read lets nobody in.

use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const PREFIX: &str = "skc_";
const MAX_FILE: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: others can write to it, and could let themselves in")]
    Writable { path: PathBuf },
    #[error("{path}:{line}: a line is a name and `sha256:` with 64 hexadecimal digits")]
    Line { path: PathBuf, line: usize },
    #[error("`{0}` is no name for a token: use a-z, A-Z, 0-9, `_`, `-` and `.`")]
    Name(String),
    #[error("{path}: there is a token `{name}` already; remove its line first")]
    Taken { path: PathBuf, name: String },
    #[error("the kernel gave no random numbers: {0}")]
    Random(getrandom::Error),
}

#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    tokens: Vec<(String, [u8; 32])>,
}

/// What changes when a file does.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

impl Tokens {
    pub fn read(path: &Path) -> Result<Tokens, TokenError> {
        let known = read(path)?;
        Ok(Tokens {
            path: path.to_owned(),
            known: Mutex::new(known),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .tokens
            .is_empty()
    }

    /// The name of who has this token.
    pub fn whose(&self, token: &str) -> Result<Option<String>, TokenError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = std::fs::metadata(&self.path).map(|meta| stamp(&meta));
        if stamp.ok() != Some(known.stamp) {
            *known = read(&self.path)?;
        }
        let hash = hash(token);
        // All are compared, whole, whichever fits.
        let mut found = None;
        for (name, wanted) in &known.tokens {
            let differs = hash
                .iter()
                .zip(wanted)
                .fold(0, |differs, (a, b)| differs | (a ^ b));
            if std::hint::black_box(differs) == 0 {
                found = Some(name);
            }
        }
        Ok(found.cloned())
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn stamp(meta: &std::fs::Metadata) -> Stamp {
    (
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    )
}

fn read(path: &Path) -> Result<Known, TokenError> {
    let error = |source| TokenError::File {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(error)?;
    let meta = file.metadata().map_err(error)?;
    let ours = meta.uid() == 0 || meta.uid() == geteuid().as_raw();
    if !ours || meta.mode() & 0o022 != 0 {
        return Err(TokenError::Writable {
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(error)?;
    let mut tokens = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = || TokenError::Line {
            path: path.to_owned(),
            line: at + 1,
        };
        let (name, digest) = line.split_once(char::is_whitespace).ok_or_else(bad)?;
        let digest = skillcell_core::Digest::parse(digest.trim()).ok_or_else(bad)?;
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digest.hex().as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        if !is_name(name) {
            return Err(bad());
        }
        tokens.push((name.to_owned(), hash));
    }
    Ok(Known {
        stamp: stamp(&meta),
        tokens,
    })
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

/// Makes a token for `name` and adds its hash to the file. Nothing keeps the token itself.
pub fn make(path: &Path, name: &str) -> Result<String, TokenError> {
    if !is_name(name) {
        return Err(TokenError::Name(name.chars().take(100).collect()));
    }
    let error = |source| TokenError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(error)?;
    let known = read(path)?;
    if known.tokens.iter().any(|(taken, _)| taken == name) {
        return Err(TokenError::Taken {
            path: path.to_owned(),
            name: name.to_owned(),
        });
    }
    let mut secret = [0u8; 32];
    getrandom::fill(&mut secret).map_err(TokenError::Random)?;
    let token = format!("{PREFIX}{}", skillcell_core::Digest::sha256(&secret).hex());
    let digest = skillcell_core::Digest::sha256(&hash(&token));
    file.write_all(format!("{name} {digest}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(error)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_known_until_its_line_is_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let (a, b) = (make(&path, "a").unwrap(), make(&path, "b").unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&a) && !text.contains(&a[4..]), "{text}");
        let tokens = Tokens::read(&path).unwrap();
        assert_eq!(tokens.whose(&a).unwrap().as_deref(), Some("a"));
        assert_eq!(tokens.whose(&b).unwrap().as_deref(), Some("b"));
        for wrong in ["", "skc_", &a[..a.len() - 1], &format!("{a}0"), "a"] {
            assert_eq!(tokens.whose(wrong).unwrap(), None, "{wrong}");
        }
        let kept = text.lines().nth(1).unwrap();
        std::fs::write(&path, format!("# one\n{kept}\n")).unwrap();
        assert_eq!(tokens.whose(&a).unwrap(), None);
        assert_eq!(tokens.whose(&b).unwrap().as_deref(), Some("b"));
        std::fs::remove_file(&path).unwrap();
        assert!(tokens.whose(&b).is_err());
    }

    #[test]
    fn a_file_that_others_can_write_lets_nobody_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let token = make(&path, "a").unwrap();
        let tokens = Tokens::read(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert!(matches!(
            tokens.whose(&token),
            Err(TokenError::Writable { .. })
        ));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(tokens.whose(&token).unwrap().as_deref(), Some("a"));
    }

    #[test]
    fn lines_that_are_none_are_errors_with_their_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        for line in ["name", "name sha256:12", "na me sha256:", "name  deadbeef"] {
            std::fs::write(&path, format!("# x\n{line}\n")).unwrap();
            let error = Tokens::read(&path).unwrap_err();
            assert!(
                matches!(error, TokenError::Line { line: 2, .. }),
                "{line}: {error}"
            );
        }
        assert!(matches!(make(&path, "a b"), Err(TokenError::Name(_))));
    }
}
