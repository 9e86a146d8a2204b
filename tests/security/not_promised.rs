//! What `process` can't promise, because it has no namespaces. SECURITY.md has the same list, word
//! for word, and a test holds the two together.

/// Landlock has no say over `stat`, so names and sizes of host files can be guessed at.
pub const METADATA: &str = "names, sizes and times of host files can be seen, not their content";

/// The mount table and the rest of `/sys` and `/dev` are the host's, though nothing in them opens.
pub const OWN_ROOT: &str = "the skill has no file system of its own: paths are the host's paths";

/// Programs need them, and Landlock can only open or close them, not put others in their place.
pub const SYSTEM_FILES: &str =
    "system files that programs need, such as /usr and /etc/passwd, are the host's and readable";

/// Without a pid namespace there is no process that takes all others with it.
pub const OWN_PIDS: &str = "process ids are the host's ids";

pub const ALL: [&str; 4] = [METADATA, OWN_ROOT, SYSTEM_FILES, OWN_PIDS];

#[test]
fn what_process_does_not_promise_is_listed_in_security_md() {
    let path = skillcell_tests::repository().join("SECURITY.md");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&text);
    for line in ALL {
        assert!(
            text.contains(&words(line)),
            "SECURITY.md does not say: {line}"
        );
    }
}
