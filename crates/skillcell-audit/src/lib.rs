//! The append-only, chained record of calls
