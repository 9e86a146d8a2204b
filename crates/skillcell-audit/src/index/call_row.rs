//! One call, as it stands in the table of calls.

use rusqlite::{Connection, OptionalExtension, Row};

/// A row of `calls`, but for the id of its run.
#[derive(Default)]
pub(super) struct CallRow {
    pub(super) id: i64,
    pub(super) skill: Option<String>,
    pub(super) version: Option<String>,
    pub(super) isolation: Option<String>,
    pub(super) level: Option<String>,
    pub(super) actor: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) started_us: u64,
    pub(super) last_us: u64,
    pub(super) status: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) wall_ms: Option<u64>,
    pub(super) denials: u64,
    pub(super) events: u64,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
}

impl CallRow {
    /// From a row with all columns.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<CallRow> {
        Ok(CallRow {
            id: row.get(0)?,
            skill: row.get(2)?,
            version: row.get(3)?,
            isolation: row.get(4)?,
            level: row.get(5)?,
            actor: row.get(6)?,
            request_id: row.get(7)?,
            started_us: row.get(8)?,
            last_us: row.get(9)?,
            status: row.get(10)?,
            reason: row.get(11)?,
            wall_ms: row.get(12)?,
            denials: row.get(13)?,
            events: row.get(14)?,
            first_seq: row.get(15)?,
            last_seq: row.get(16)?,
        })
    }

    /// The one of this run, if there is one yet.
    pub(super) fn of_run(connection: &Connection, run: &str) -> rusqlite::Result<Option<CallRow>> {
        connection
            .prepare_cached("SELECT * FROM calls WHERE run_id = ?1")?
            .query_row([run], CallRow::read)
            .optional()
    }
}
