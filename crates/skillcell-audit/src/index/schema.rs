//! The tables. Whatever changes here changes the version, and every index is made again.

use rusqlite::Connection;

/// In `user_version`; written last, so that an index that wasn't finished has none.
pub(super) const VERSION: i64 = 2;

pub(super) const TABLES: &str = "
-- One row: how far the log is in here.
CREATE TABLE upto (
    segment INTEGER NOT NULL,
    -- Of the last line that is in, and after it.
    line_start INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    -- The first line that ever was in, and the first that the log still had.
    first_seq INTEGER NOT NULL,
    gone_to INTEGER NOT NULL
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    skill TEXT,
    version TEXT,
    isolation TEXT,
    level TEXT,
    actor TEXT,
    request_id TEXT,
    started_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    status TEXT,
    reason TEXT,
    wall_ms INTEGER,
    denials INTEGER NOT NULL,
    events INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
);
CREATE INDEX calls_by_time ON calls (started_us);
-- What a call had to do with, and how often.
CREATE TABLE facts (
    facet INTEGER NOT NULL,
    value TEXT NOT NULL,
    call INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (facet, value, call)
) WITHOUT ROWID;
CREATE INDEX facts_of_call ON facts (call, facet);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    call INTEGER,
    unix_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    segment INTEGER NOT NULL,
    offset INTEGER NOT NULL
);
-- Times of runs of lines: clocks jump, so the order of lines is not the order of times.
CREATE TABLE spans (
    first_seq INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    min_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL
);
-- The words of an event, and one made-up word per thing that can be asked for.
CREATE VIRTUAL TABLE words USING fts5(
    text, keys, content='', columnsize=0, detail=full, tokenize='unicode61'
);
";

/// For an index that can be thrown away; `building` is the time before there is anything to lose.
pub(super) fn tune(connection: &Connection, building: bool) -> rusqlite::Result<()> {
    connection.execute_batch(if building {
        "PRAGMA page_size = 8192; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;
         PRAGMA synchronous = OFF; PRAGMA cache_size = -131072; PRAGMA temp_store = MEMORY;"
    } else {
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = TRUNCATE;
         PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;
         PRAGMA mmap_size = 1073741824;"
    })
}
