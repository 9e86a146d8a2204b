use crate::Event;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use skillcell_core::RunId;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("there is no place for it: neither XDG_STATE_HOME nor HOME is set")]
    NoPlace,
}

/// The log of this user, open for appending.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    appended: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    run_id: &'a RunId,
    unix_ms: u64,
    /// SHA-256 of the line before, without its newline.
    previous: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

/// What the first line refers to.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// No line is longer: denials are bounded in number and length.
const MAX_LINE: u64 = 4 << 20;

impl Log {
    /// `SKILLCELL_STATE_DIR`, or `XDG_STATE_HOME`, or the user's state folder, which is `/var/log/skillcell` for root.
    pub fn open_default() -> Result<Log, AuditError> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let folder = match variable("SKILLCELL_STATE_DIR") {
            Some(folder) => folder,
            None if variable("XDG_STATE_HOME").is_none()
                && rustix::process::geteuid().is_root() =>
            {
                PathBuf::from("/var/log/skillcell")
            }
            None => variable("XDG_STATE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
                .ok_or(AuditError::NoPlace)?
                .join("skillcell"),
        };
        Log::open(&folder.join("audit.jsonl"))
    }

    pub fn open(path: &Path) -> Result<Log, AuditError> {
        let error = |source| AuditError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(error)?;
        }
        // Never through a link: the log is written where it seems to be.
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))
            .map_err(|e| error(e.into()))?;
        Ok(Log {
            path: path.to_owned(),
            file: File::from(fd),
            appended: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Events of this call so far.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Appends one event; gives the new head of the chain. Calls that run at once take turns.
    pub fn append(&mut self, run_id: &RunId, event: &Event) -> Result<String, AuditError> {
        self.append_line(run_id, event)
            .map_err(|source| AuditError::Io {
                path: self.path.clone(),
                source,
            })
    }

    fn append_line(&mut self, run_id: &RunId, event: &Event) -> io::Result<String> {
        flock(&self.file, FlockOperation::LockExclusive)?;
        let done = self.append_locked(run_id, event);
        flock(&self.file, FlockOperation::Unlock)?;
        done
    }

    fn append_locked(&mut self, run_id: &RunId, event: &Event) -> io::Result<String> {
        let (previous, whole) = self.last_line()?;
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_millis() as u64);
        let mut line = Vec::new();
        if !whole {
            line.push(b'\n'); // a writer died in the middle of its line; it stays as it is
        }
        let start = line.len();
        serde_json::to_writer(
            &mut line,
            &Line {
                run_id,
                unix_ms,
                previous: &previous,
                event,
            },
        )?;
        let head = hex(&Sha256::digest(&line[start..]));
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.appended += 1;
        Ok(head)
    }

    /// The hash of the last line, and whether it is whole.
    fn last_line(&mut self) -> io::Result<(String, bool)> {
        let length = self.file.seek(SeekFrom::End(0))?;
        if length == 0 {
            return Ok((GENESIS.to_owned(), true));
        }
        let mut window = 8 << 10;
        loop {
            let take = length.min(window);
            self.file.seek(SeekFrom::Start(length - take))?;
            let mut tail = vec![0; take as usize];
            self.file.read_exact(&mut tail)?;
            let whole = tail.last() == Some(&b'\n');
            let body = if whole {
                &tail[..tail.len() - 1]
            } else {
                &tail[..]
            };
            let start = body.iter().rposition(|b| *b == b'\n').map(|at| at + 1);
            if let Some(start) = start.or((take == length).then_some(0)) {
                return Ok((hex(&Sha256::digest(&body[start..])), whole));
            }
            if window > MAX_LINE {
                return Err(io::Error::other(
                    "its last line is too long to be one of ours",
                ));
            }
            window *= 8;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String can't fail.
            write!(text, "{byte:02x}").unwrap_or_default();
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillcell_core::{Status, Usage};

    fn event() -> Event {
        Event::call_ended(Status::Ok, None, &[], Usage::default())
    }

    #[test]
    fn each_line_carries_the_hash_of_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        let run = RunId::new(1, 2);
        let mut heads = vec![GENESIS.to_owned()];
        for _ in 0..3 {
            heads.push(
                Log::open(&path)
                    .and_then(|mut log| log.append(&run, &event()))
                    .expect("appends"),
            );
        }
        let text = std::fs::read_to_string(&path).expect("reads");
        for (line, head) in text.lines().zip(heads.windows(2)) {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(value["previous"], head[0].as_str());
            assert_eq!(hex(&Sha256::digest(line.as_bytes())), head[1]);
        }
    }
}
