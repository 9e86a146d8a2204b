#![no_main]
//! Whatever a skill writes as its result is answered, and never brings the supervisor down.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| skillcell_supervisor::fuzz_result(bytes));
