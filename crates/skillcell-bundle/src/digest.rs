//! The fingerprint of a bundle: what caches and the record know it by.
//!
//! Two trees that differ in any name, type, executable bit, link or byte must differ in their
//! digest, so every part that can vary in length has its length before it, and each file
//! contributes the hash of its content and not the content.

use crate::BundleError;
use crate::root::Root;
use crate::walk::{Kind, walk};
use sha2::{Digest as _, Sha256};
use skillcell_core::Digest;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

const MAX_BYTES: u64 = 512 << 20;
/// Names the layout below; a change of it changes every digest.
const FORMAT: &[u8] = b"skillcell-bundle-1\n";

/// What a bundle is, by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    pub digest: Digest,
    /// Whether it holds compiled files that the digest leaves out: they must never be run.
    pub bytecode: bool,
}

pub(crate) fn fingerprint(root: &Root) -> Result<Fingerprint, BundleError> {
    let too_much = || BundleError::TooMuchData {
        path: root.path().to_owned(),
        limit: MAX_BYTES,
    };
    let mut tree = Sha256::new();
    tree.update(FORMAT);
    let mut room = MAX_BYTES;
    let mut buffer = vec![0; 64 << 10];
    let walked = walk(root)?;
    for entry in walked.entries {
        let mark = match &entry.kind {
            Kind::File { executable: false } => b'f',
            Kind::File { executable: true } => b'x',
            Kind::Folder => b'd',
            Kind::Link { .. } => b'l',
            // A read-only mount doesn't keep a skill from connecting to a socket in its bundle.
            Kind::Other => {
                return Err(BundleError::NotRegular {
                    path: root.path().join(&entry.path),
                    kind: "a pipe, socket or device, which no bundle may hold",
                });
            }
        };
        tree.update([mark]);
        add(&mut tree, entry.path.as_os_str().as_bytes());
        match &entry.kind {
            Kind::Link { target } => add(&mut tree, target.as_bytes()),
            Kind::File { .. } => {
                let (mut file, size) = root.open_file(&entry.path)?;
                if size > room {
                    return Err(too_much());
                }
                let mut content = Sha256::new();
                loop {
                    let count = file.read(&mut buffer).map_err(|error| BundleError::File {
                        path: root.path().join(&entry.path),
                        step: "read it",
                        error,
                    })?;
                    if count == 0 {
                        break;
                    }
                    // Counted as well: the file may be growing.
                    room = room.checked_sub(count as u64).ok_or_else(too_much)?;
                    content.update(&buffer[..count]);
                }
                tree.update(content.finalize());
            }
            Kind::Folder | Kind::Other => {}
        }
    }
    Ok(Fingerprint {
        digest: Digest::sha256(&tree.finalize().into()),
        bytecode: walked.bytecode,
    })
}

fn add(tree: &mut Sha256, bytes: &[u8]) {
    tree.update((bytes.len() as u64).to_le_bytes());
    tree.update(bytes);
}
