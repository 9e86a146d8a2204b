//! An index over the log, so that questions are answered without reading all of it. It is made
//! from the log, is never believed over it, and can be removed at any time: what is shown of an event is
//! read from the log itself.

mod call_row;
mod entry;
mod filter;
mod keys;
mod place;
mod query;
mod schema;
mod stats;
mod update;
mod writer;

pub use filter::Filter;
pub use query::{Call, Found};
pub use stats::{Count, Durations, SkillStats, Stats};

use crate::{AuditError, Folder};
use place::Place;
use rusqlite::Connection;
use std::path::PathBuf;

/// How far the index has got, in bytes of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Who wants to know how far it has got.
pub type Watch<'a> = &'a mut dyn FnMut(Progress);

/// What became of the index when it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Lines that were not in it before.
    pub lines: u64,
    /// Why it was made from the beginning, where it was.
    pub rebuilt: Option<Rebuilt>,
    /// Kept in memory only: the folder of the log can't be written.
    pub in_memory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuilt {
    /// There was none.
    New,
    Asked,
    /// Another version of Skillcell made it.
    Version,
    /// It is not of this log.
    LogReplaced,
    /// Most of what was in it was pruned from the log.
    Pruned,
    Damaged,
}

/// An index that knows the whole log, as of when it was opened.
pub struct Index {
    connection: Connection,
    folder: Folder,
    path: PathBuf,
    made: Made,
    /// The first line that is still there.
    first_seq: u64,
    // Others wait until this one is dropped.
    _place: Place,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("path", &self.path).finish()
    }
}

impl Index {
    /// Brings the index up to date, or makes it.
    pub fn open(folder: &Folder, watch: Watch<'_>) -> Result<Index, AuditError> {
        let place = Place::take(folder)?;
        match Self::open_at(folder, &place) {
            Ok(Ok(mut index)) => match index.update(watch) {
                Ok(()) => Ok(index.held(place)),
                Err(error) if is_damage(&error) => {
                    drop(index);
                    Self::make(folder, place, Rebuilt::Damaged, watch)
                }
                Err(error) => Err(error),
            },
            Ok(Err(why)) => Self::make(folder, place, why, watch),
            Err(error) if is_damage(&error) => Self::make(folder, place, Rebuilt::Damaged, watch),
            Err(error) => Err(error),
        }
    }

    /// Makes the index from the beginning.
    pub fn rebuild(folder: &Folder, watch: Watch<'_>) -> Result<Index, AuditError> {
        let place = Place::take(folder)?;
        Self::make(folder, place, Rebuilt::Asked, watch)
    }

    /// Opens the index and asks it. Where the answer shows that it is damaged, it is made again and
    /// asked once more.
    pub fn ask<T>(
        folder: &Folder,
        watch: Watch<'_>,
        mut question: impl FnMut(&Index) -> Result<T, AuditError>,
    ) -> Result<(T, Made), AuditError> {
        let index = Self::open(folder, watch)?;
        match question(&index) {
            Ok(answer) => Ok((answer, index.made)),
            Err(error) if is_damage(&error) => {
                drop(index);
                let place = Place::take(folder)?;
                let index = Self::make(folder, place, Rebuilt::Damaged, watch)?;
                Ok((question(&index)?, index.made))
            }
            Err(error) => Err(error),
        }
    }

    pub fn made(&self) -> Made {
        self.made
    }

    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> AuditError + use<> {
        index_error(&self.path)
    }
}

fn index_error(path: &std::path::Path) -> impl Fn(rusqlite::Error) -> AuditError + use<> {
    let path = path.to_owned();
    move |source| AuditError::Index {
        path: path.clone(),
        source: Box::new(source),
    }
}

/// Whether making the index again would help.
fn is_damage(error: &AuditError) -> bool {
    match error {
        AuditError::IndexWrong { .. } => true,
        AuditError::Index { source, .. } => match &**source {
            rusqlite::Error::SqliteFailure(failure, _) => !matches!(
                failure.code,
                rusqlite::ErrorCode::DiskFull
                    | rusqlite::ErrorCode::OutOfMemory
                    | rusqlite::ErrorCode::CannotOpen
                    | rusqlite::ErrorCode::PermissionDenied
                    | rusqlite::ErrorCode::ReadOnly
            ),
            // What is in it isn't of the types that were put in.
            _ => true,
        },
        _ => false,
    }
}
