//! Signed checkpoints: a key of the operator's says where the chain stood. Somebody who can write
//! the log, but doesn't have the key, can't make a shorter or other one pass for it.

use crate::line::{hex, unhex};
use crate::{AuditError, Folder, Log, Retention};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// One line of `checkpoints.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub seq: u64,
    pub hash: String,
    pub unix_us: u64,
    /// Ed25519, 64 hexadecimal digits.
    pub key: String,
    /// Over [`Checkpoint::message`], 128 hexadecimal digits.
    pub signature: String,
}

impl Checkpoint {
    /// What is signed.
    pub fn message(seq: u64, hash: &str, unix_us: u64) -> String {
        format!("skillcell audit checkpoint 1\n{seq}\n{hash}\n{unix_us}\n")
    }

    /// Whether this key signed just this.
    pub fn holds(&self, key: &str) -> bool {
        let (Some(key_bytes), Some(signature)) =
            (unhex(key.as_bytes()), unhex_signature(&self.signature))
        else {
            return false;
        };
        let message = Checkpoint::message(self.seq, &self.hash, self.unix_us);
        self.key == key
            && UnparsedPublicKey::new(&ED25519, key_bytes)
                .verify(message.as_bytes(), &signature)
                .is_ok()
    }
}

fn unhex_signature(text: &str) -> Option<[u8; 64]> {
    let (first, second) = text.as_bytes().split_at_checked(64)?;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&unhex(first)?);
    signature[32..].copy_from_slice(&unhex(second)?);
    Some(signature)
}

/// The private key, in memory.
pub(crate) struct Signer(Ed25519KeyPair);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// The log's key, if it has one. One that can't be used is an error, not none.
    pub(crate) fn load(folder: &Folder) -> Result<Option<Signer>, AuditError> {
        let path = folder.signing_key();
        let mut file = match Folder::open_private(&path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(AuditError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(4096)
            .read_to_end(&mut bytes)
            .map_err(AuditError::io(&path))?;
        match Ed25519KeyPair::from_pkcs8(&bytes) {
            Ok(pair) => Ok(Some(Signer(pair))),
            Err(_) => Err(AuditError::Key {
                path,
                what: "is not an Ed25519 key",
            }),
        }
    }

    fn public(&self) -> String {
        hex(self.0.public_key().as_ref())
    }

    pub(crate) fn checkpoint(
        &self,
        folder: &Folder,
        seq: u64,
        hash: &str,
    ) -> Result<(), AuditError> {
        let path = folder.checkpoints();
        let unix_us = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_micros() as u64);
        let message = Checkpoint::message(seq, hash, unix_us);
        let checkpoint = Checkpoint {
            seq,
            hash: hash.to_owned(),
            unix_us,
            key: self.public(),
            signature: hex(self.0.sign(message.as_bytes()).as_ref()),
        };
        let mut line = serde_json::to_vec(&checkpoint)?;
        line.push(b'\n');
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let mut file = Folder::open_private(&path, flags)?;
        cut_unfinished(&file).map_err(AuditError::io(&path))?;
        file.write_all(&line).map_err(AuditError::io(&path))
    }
}

/// Half a checkpoint, of a writer that was stopped or had no room, must not become the beginning of the
/// next one.
fn cut_unfinished(file: &File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut byte = [b'\n'];
    while end > 0 {
        file.read_exact_at(&mut byte, end - 1)?;
        if byte == [b'\n'] {
            break;
        }
        end -= 1;
    }
    if end < length {
        file.set_len(end)?;
    }
    Ok(())
}

/// Makes the log's key; never over an old one. Gives the public half and where it is.
pub fn keygen(folder: &Folder) -> Result<(String, PathBuf), AuditError> {
    folder.make()?;
    let path = folder.signing_key();
    if path.symlink_metadata().is_ok() {
        return Err(AuditError::KeyExists { path });
    }
    let failed = || AuditError::Key {
        path: path.clone(),
        what: "can't be made: the system gives no randomness",
    };
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| failed())?;
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).map_err(|_| failed())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    Folder::open_private(&path, flags)?
        .write_all(document.as_ref())
        .map_err(AuditError::io(&path))?;
    let public = hex(pair.public_key().as_ref());
    let public_path = folder.public_key();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    Folder::open_private(&public_path, flags)?
        .write_all(format!("{public}\n").as_bytes())
        .map_err(AuditError::io(&public_path))?;
    // What is there already is signed at once, be it nothing.
    Log::open(folder.clone(), Retention::default())?.checkpoint()?;
    Ok((public, public_path))
}
