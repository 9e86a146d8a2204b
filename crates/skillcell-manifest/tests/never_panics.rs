//! Hostile text makes errors, never panics.

use proptest::prelude::*;
use skillcell_manifest::{
    check_requirement, imports_module, parse_agent_skill, parse_security_policy, parse_skillware,
    pep723_requirements, runtime_for_script,
};

/// Text with the words and marks that the parsers look at, so that more than the first line of them
/// is reached.
fn structured() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name: a\n"),
        Just("requirements:\n"),
        Just("- "),
        Just("  "),
        Just("\n"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(": "),
        Just(", "),
        Just("&a "),
        Just("*a "),
        Just("!!str "),
        Just("<<: "),
        Just("---\n"),
        Just("# "),
        Just("\""),
        Just("'"),
        Just("|\n"),
        Just("security_policy:\n"),
        Just("version: 1\n"),
        Just("network: "),
        Just("egress: "),
        Just("domains: "),
        Just("a.com"),
        Just("# /// script\n"),
        Just("# ///\n"),
        Just("dependencies = "),
        Just("\"x\""),
        Just("env_vars: "),
        Just("parameters: "),
        Just("execution: "),
        Just("command: "),
        Just("\u{feff}"),
        Just("é"),
        Just("\0"),
        Just("\\"),
        Just("import "),
        Just("from "),
        Just("\"\"\""),
        Just("#!"),
        Just("/usr/bin/env "),
        Just("\r\n"),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

fn every_parser(text: &str) {
    let messages = [
        parse_skillware(text, text).err(),
        parse_agent_skill(text, "a").err(),
        parse_agent_skill(&format!("---\n{text}\n---\n"), "a").err(),
        parse_security_policy(text).err(),
        pep723_requirements(text).err(),
        check_requirement(text, None).err(),
        runtime_for_script("x", text.as_bytes()).err(),
    ];
    for error in messages.into_iter().flatten() {
        let message = error.to_string();
        assert!(
            !message.is_empty() && !message.chars().any(char::is_control),
            "{message:?}"
        );
    }
    imports_module(text, "a");
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        every_parser(&text);
    }

    #[test]
    fn structured_text_never_panics(text in structured()) {
        every_parser(&text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(name in any::<String>(), head in prop::collection::vec(any::<u8>(), 0..300)) {
        let shebang = [b"#!".as_slice(), &head].concat();
        for head in [head, shebang] {
            if let Err(error) = runtime_for_script(&name, &head) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
