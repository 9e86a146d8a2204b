#![no_main]
//! `SKILL.md` makes a manifest or an error, and a policy file that it names stays in the bundle.

libfuzzer_sys::fuzz_target!(|text: &str| {
    match skillcell_manifest::parse_agent_skill(text, "skill") {
        Ok(parsed) => {
            if let Some(file) = parsed.policy_file {
                assert!(!file.starts_with('/') && file.split('/').all(|word| word != ".."));
            }
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});
