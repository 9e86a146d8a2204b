#![no_main]
//! `manifest.yaml` makes a manifest or an error, whatever it holds.

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(error) = skillcell_manifest::parse_skillware(text, "skill") {
        // Messages end on a terminal.
        assert!(!error.to_string().chars().any(char::is_control));
    }
});
