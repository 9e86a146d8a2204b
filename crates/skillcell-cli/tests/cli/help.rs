use crate::{skillcell, stdout};

const COMMANDS: [&[&str]; 25] = [
    &[],
    &["run"],
    &["explain"],
    &["check"],
    &["doctor"],
    &["schema"],
    &["completions"],
    &["policy"],
    &["policy", "test"],
    &["audit"],
    &["audit", "list"],
    &["audit", "show"],
    &["audit", "tail"],
    &["audit", "search"],
    &["audit", "stats"],
    &["audit", "verify"],
    &["audit", "keygen"],
    &["audit", "prune"],
    &["audit", "reindex"],
    &["deps"],
    &["deps", "prepare"],
    &["deps", "list"],
    &["deps", "prune"],
    &["serve"],
    &["serve", "token"],
];

#[test]
fn every_command_has_a_help_text() {
    for command in COMMANDS {
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let output = skillcell(&args);
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        let text = stdout(&output);
        if !command.is_empty() {
            assert!(text.contains("Examples:"), "{command:?} has no examples");
        }
        let name = ["help"].iter().chain(command).copied().collect::<Vec<_>>();
        insta::assert_snapshot!(name.join("_"), text);
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_so_on_stderr() {
    for args in [
        &[][..],
        &["rum"],
        &["run"],
        &["run", "x", "--memory", "much"],
        &["check"],
        &["schema", "nope"],
        &["completions", "tcsh"],
        &["policy"],
        &["policy", "test", "x"],
        &["deps"],
        &["deps", "prune", "--older-than", "1y"],
        &["deps", "prune", "--older-than", "1d", "--all"],
    ] {
        let output = skillcell(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = skillcell(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(stdout(&output).contains("explain"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_no_panic() {
    use std::process::{Command, Stdio};
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for args in [
        &["completions", "bash"][..],
        &["schema"],
        &["schema", "policy"],
        &["--help"],
        &["doctor"],
        &["deps", "list"],
    ] {
        let child = Command::new(env!("CARGO_BIN_EXE_skillcell"))
            .args(args)
            .stdout(writer.try_clone().unwrap())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&child.stderr);
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
        assert!(child.status.code().is_some(), "{args:?}");
    }
}
