//! Every command shown in `examples/skills/`, with the answer shown there.

use crate::cell;
use serde_json::{Value, json};
use skillcell_tests::{Call, example, shared};

/// The caller's own index and certificates, for calls that install packages.
fn with_index(mut call: Call<'_>) -> Call<'_> {
    for (name, value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let wanted = ["PIP_", "UV_", "SSL_CERT_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
            || ["HTTPS_PROXY", "https_proxy", "REQUESTS_CA_BUNDLE"].contains(&text.as_ref());
        if wanted {
            call = call.host_env(&name, value);
        }
    }
    call
}

#[test]
fn hello_greets() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("hello"))
        .params(&json!({"name": "Ada"}))
        .run();
    assert_eq!(outcome.assert_ok(), &json!({"greeting": "Hello, Ada!"}));
}

/// Installs from the package index, once; the second call finds what the first has made.
#[test]
fn needs_package_installs_its_requirement_once() {
    let _shared = shared();
    let cell = cell();
    let run = || {
        with_index(cell.call(example("needs_package")))
            .params(&json!({"bytes": 1536}))
            .run()
    };
    assert_eq!(run().assert_ok(), &json!({"size": "1.5 KiB"}));
    let again = run();
    assert_eq!(again.assert_ok(), &json!({"size": "1.5 KiB"}));
    assert!(again.elapsed.as_secs() < 5, "{}", again.show());
}

#[test]
fn node_tool_makes_a_slug() {
    let _shared = shared();
    let cell = cell();
    let outcome = cell
        .call(example("node_tool"))
        .params(&json!({"title": "Crème brûlée, twice"}))
        .run();
    assert_eq!(outcome.assert_ok(), &json!({"slug": "creme-brulee-twice"}));
}

#[test]
fn shell_tool_counts() {
    let _shared = shared();
    let cell = cell();
    let call = |entry| cell.call(example("shell-tool")).flags(["--entry", entry]);
    let outcome = call("scripts/count.sh").arguments(["one two three"]).run();
    assert_eq!(
        outcome.assert_ok(),
        &json!({"lines": 1, "words": 3, "bytes": 14})
    );
    let outcome = call("scripts/explain.sh").run();
    let text = "count.sh counts lines, words and bytes\n";
    assert_eq!(
        outcome.assert_ok(),
        &json!({"stdout": text, "exit_code": 0})
    );
}

#[test]
fn byte_sizes_installs_its_inline_dependency() {
    let _shared = shared();
    let cell = cell();
    let call = with_index(cell.call(example("byte-sizes"))).flags(["--entry", "scripts/sizes.py"]);
    let outcome = call.arguments(["1536", "1048576"]).run();
    assert_eq!(
        outcome.assert_ok(),
        &json!({"1536": "1.5 KiB", "1048576": "1.0 MiB"})
    );
}

#[test]
fn file_report_reads_and_writes_granted_files() {
    let _shared = shared();
    let cell = cell();
    let input = cell.file("work/in.txt", "the cat and the hat\n");
    let output = cell.path("work/out.txt");
    let params = json!({"input_path": input, "output_path": output});
    let outcome = cell
        .call(example("file_report"))
        .params(&params)
        .read(&input)
        .write(&output)
        .run();
    assert_eq!(
        outcome.assert_ok(),
        &json!({"words": 5, "distinct": 4, "report": output})
    );
    assert_eq!(
        std::fs::read_to_string(&output).expect("written"),
        "2\tthe\n1\tand\n1\tcat\n1\that\n"
    );
}

#[test]
fn file_report_without_grants_says_which_flag_is_missing() {
    let _shared = shared();
    let cell = cell();
    let input = cell.file("work/in.txt", "the cat and the hat\n");
    let params = json!({"input_path": input, "output_path": cell.path("work/out.txt")});
    let outcome = cell.call(example("file_report")).params(&params).run();
    outcome.assert_status("denied", 3);
    let hints: Vec<_> = outcome
        .denials()
        .iter()
        .map(|d| d["hint"].to_string())
        .collect();
    assert!(
        hints.iter().any(|h| h.contains("--read")) && hints.iter().any(|h| h.contains("--write")),
        "{hints:?}"
    );
    assert!(!cell.path("work/out.txt").exists());
}

/// The commands in the documents are the ones that are run above.
#[test]
fn documents_of_the_examples_show_what_is_tested() {
    for (file, shown) in [
        ("hello/README.md", "{\"greeting\":\"Hello, Ada!\"}"),
        ("needs_package/README.md", "{\"size\":\"1.5 KiB\"}"),
        ("node_tool/README.md", "{\"slug\":\"creme-brulee-twice\"}"),
        (
            "shell-tool/SKILL.md",
            "{\"lines\":1,\"words\":3,\"bytes\":14}",
        ),
        (
            "byte-sizes/SKILL.md",
            "{\"1536\":\"1.5 KiB\",\"1048576\":\"1.0 MiB\"}",
        ),
        (
            "file_report/README.md",
            "{\"words\":5,\"distinct\":4,\"report\":\"/tmp/out.txt\"}",
        ),
    ] {
        let text = std::fs::read_to_string(example(file)).expect("the document is there");
        assert!(text.contains(shown), "{file} does not show {shown}");
        assert!(serde_json::from_str::<Value>(shown).is_ok());
    }
}
