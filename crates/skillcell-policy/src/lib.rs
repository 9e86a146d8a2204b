//! Parses operator policy and answers what it allows
