//! Where long answers go: standard output, or a file that appears whole or not at all.

use crate::output::printable;
use std::io::{BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

pub(crate) enum Sink {
    Stdout {
        out: BufWriter<StdoutLock<'static>>,
        terminal: bool,
    },
    File {
        /// Beside the file that it becomes, for its owner alone; gone with the value.
        made: BufWriter<NamedTempFile>,
        path: PathBuf,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkError {
    /// Whoever closed the other end (`| head`) has seen enough.
    #[error("nobody reads any more")]
    Closed,
    #[error("standard output: {0}")]
    Stdout(std::io::Error),
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{0} is not a regular file, and would be replaced by one")]
    NotAFile(PathBuf),
}

impl Sink {
    pub(crate) fn new(path: Option<&Path>) -> Result<Sink, SinkError> {
        let Some(path) = path else {
            let out = std::io::stdout();
            return Ok(Sink::Stdout {
                terminal: out.is_terminal(),
                out: BufWriter::with_capacity(1 << 16, out.lock()),
            });
        };
        // A link or device at the name would be gone after the rename.
        if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(SinkError::NotAFile(path.to_owned()));
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let made = NamedTempFile::new_in(folder).map_err(SinkError::file(folder))?;
        Ok(Sink::File {
            made: BufWriter::with_capacity(1 << 16, made),
            path: path.to_owned(),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self {
            // What skills chose is in it, and a terminal obeys what it is shown.
            Sink::Stdout {
                out,
                terminal: true,
            } => {
                let text = printable(&String::from_utf8_lossy(bytes));
                out.write_all(text.as_bytes()).map_err(stdout)
            }
            Sink::Stdout { out, .. } => out.write_all(bytes).map_err(stdout),
            Sink::File { made, path } => made.write_all(bytes).map_err(SinkError::file(path)),
        }
    }

    /// Everything is there from now on.
    pub(crate) fn finish(self) -> Result<(), SinkError> {
        match self {
            Sink::Stdout { mut out, .. } => out.flush().map_err(stdout),
            Sink::File { made, path } => {
                let made = made
                    .into_inner()
                    .map_err(|e| SinkError::file(&path)(e.into_error()))?;
                made.as_file().sync_all().map_err(SinkError::file(&path))?;
                made.persist(&path)
                    .map_err(|e| SinkError::file(&path)(e.error))?;
                Ok(())
            }
        }
    }
}

fn stdout(error: std::io::Error) -> SinkError {
    match error.kind() {
        ErrorKind::BrokenPipe => SinkError::Closed,
        _ => SinkError::Stdout(error),
    }
}

impl SinkError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> SinkError {
        let path = path.to_owned();
        move |source| SinkError::File { path, source }
    }
}
