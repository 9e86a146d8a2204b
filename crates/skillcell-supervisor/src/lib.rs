//! Takes one call from plan to outcome
