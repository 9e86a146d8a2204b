//! Real skills.
