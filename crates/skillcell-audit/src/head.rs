//! The end of the chain, kept beside it: writers need not read a segment to go on, and a log that
//! was cut off at its end doesn't pass for whole.

use crate::line::{GENESIS, Hash, hex, unhex};
use crate::{AuditError, Folder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Of the head's file: written over in place, so always of one length.
const SIZE: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) segment: u64,
    /// Of that segment, in bytes.
    pub(crate) length: u64,
    pub(crate) seq: u64,
    pub(crate) hash: Hash,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    segment: u64,
    length: u64,
    seq: u64,
    hash: String,
}

impl Head {
    pub(crate) const NEW: Head = Head {
        segment: 0,
        length: 0,
        seq: 0,
        hash: GENESIS,
    };

    pub(crate) fn open(folder: &Folder) -> Result<File, AuditError> {
        Folder::open_private(&folder.head(), OFlags::RDWR | OFlags::CREATE)
    }

    /// `None` for an empty file: a log that begins.
    pub(crate) fn read(file: &File, folder: &Folder) -> Result<Option<Head>, AuditError> {
        let path = folder.head();
        let mut bytes = [0; SIZE];
        let mut length = 0;
        while length < SIZE {
            match file.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => length += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(AuditError::io(&path)(error)),
            }
        }
        if length == 0 {
            return Ok(None);
        }
        let broken = || AuditError::changed(&path, "is not what a writer leaves");
        let written: Written = serde_json::from_slice(&bytes[..length]).map_err(|_| broken())?;
        Ok(Some(Head {
            segment: written.segment,
            length: written.length,
            seq: written.seq,
            hash: unhex(written.hash.as_bytes()).ok_or_else(broken)?,
        }))
    }

    pub(crate) fn write(&self, file: &File, folder: &Folder) -> Result<(), AuditError> {
        let mut bytes = serde_json::to_vec(&Written {
            segment: self.segment,
            length: self.length,
            seq: self.seq,
            hash: hex(&self.hash),
        })?;
        bytes.resize(SIZE - 1, b' ');
        bytes.push(b'\n');
        file.write_all_at(&bytes, 0)
            .map_err(AuditError::io(&folder.head()))
    }
}
