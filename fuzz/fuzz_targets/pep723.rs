#![no_main]
//! No inline requirement can be an option, a path or a URL.

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(Some(requirements)) = skillcell_manifest::pep723_requirements(text) {
        for requirement in requirements {
            assert!(!requirement.starts_with('-'));
            assert!(!requirement.contains(['/', '\n', '\r', '@', '$']));
        }
    }
});
