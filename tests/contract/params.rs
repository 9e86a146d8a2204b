//! Params: where they come from, and what is checked before the skill starts.

use crate::{cell, python_skill};
use serde_json::json;
use skillcell_tests::{Cell, Outcome, example, shared};

const ECHO: &str = "class Echo:\n    def execute(self, params):\n        return params\n";

#[test]
fn params_come_from_a_flag_a_file_or_stdin() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(&cell, "", ECHO);
    let params = json!({"text": "é \" \\ \n", "list": [1, 2.5, null]});
    assert_eq!(cell.call(&skill).params(&params).run().assert_ok(), &params);
    let file = cell.file("work/params.json", params.to_string());
    assert_eq!(
        cell.call(&skill)
            .flag("--params-file")
            .flag(&file)
            .run()
            .assert_ok(),
        &params
    );
    let stdin = cell
        .call(&skill)
        .flags(["--params", "-"])
        .stdin(params.to_string())
        .run();
    assert_eq!(stdin.assert_ok(), &params);
}

#[test]
fn large_params_arrive_whole() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(
        &cell,
        "",
        "class Size:\n    def execute(self, params):\n        return len(params['x'])\n",
    );
    let params = json!({"x": "é".repeat(300_000)}).to_string();
    assert_eq!(
        cell.call(&skill)
            .flags(["--params", "-"])
            .stdin(params)
            .run()
            .assert_ok(),
        300_000
    );
}

#[track_caller]
fn assert_bad_params(outcome: &Outcome, message: &str) {
    outcome.assert_error("invalid_input", 2, &["invalid_params", "invalid_usage"]);
    assert!(
        outcome.error_message().contains(message),
        "no `{message}`\n{}",
        outcome.show()
    );
    outcome.assert_readable();
}

fn hello(cell: &Cell, params: &str) -> Outcome {
    cell.call(example("hello"))
        .flags(["--params", params])
        .run()
}

#[test]
fn params_that_are_not_json_are_refused() {
    let _shared = shared();
    let cell = cell();
    for params in [
        "{name: Ada}",
        "{\"name\": \"Ada\"",
        "",
        "{} {}",
        "NaN",
        "{\"name\": \"Ada\",}",
    ] {
        let outcome = hello(&cell, params);
        assert_bad_params(&outcome, "JSON");
    }
}

#[test]
fn params_that_do_not_match_the_schema_are_refused() {
    let _shared = shared();
    let cell = cell();
    assert_bad_params(&hello(&cell, "{\"name\": 7}"), "name");
    assert_bad_params(&hello(&cell, "{}"), "name");
    assert_bad_params(&hello(&cell, "{\"name\": \"Ada\", \"nmae\": 1}"), "nmae");
    assert_bad_params(&hello(&cell, "[]"), "object");
}

/// A skill that would show it was started, if it were.
#[test]
fn nothing_runs_when_params_are_wrong() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(
        &cell,
        "parameters: {type: object, required: [name]}\n",
        "raise SystemExit('the skill was started')\n",
    );
    let outcome = cell.call(skill).flags(["--params", "{}"]).run();
    assert_bad_params(&outcome, "name");
    assert!(
        !outcome.stdout.contains("was started") && !outcome.stderr.contains("was started"),
        "{}",
        outcome.show()
    );
}

#[test]
fn two_sources_of_params_are_a_usage_error() {
    let _shared = shared();
    let cell = cell();
    let file = cell.file("work/params.json", "{}");
    let outcome = cell
        .call(example("hello"))
        .flags(["--params", "{}"])
        .flag("--params-file")
        .flag(&file)
        .run();
    assert_eq!(outcome.code, 2, "{}", outcome.show());
}

/// The message names what is missing, before the skill starts.
#[test]
fn a_missing_required_variable_is_named() {
    let _shared = shared();
    let cell = cell();
    let skill = python_skill(
        &cell,
        "env_vars:\n  API_KEY:\n    description: a key\n    required: true\n",
        ECHO,
    );
    let outcome = cell.call(&skill).flags(["--params", "{}"]).run();
    outcome.assert_error("invalid_input", 2, &["missing_env"]);
    assert!(
        outcome.error_message().contains("API_KEY"),
        "{}",
        outcome.show()
    );
    let hint = outcome.envelope()["error"]["hint"]
        .as_str()
        .unwrap_or_default();
    assert!(hint.contains("--env API_KEY"), "{}", outcome.show());
    // A variable that is in the caller's environment is still not granted.
    let offered = cell
        .call(&skill)
        .flags(["--params", "{}"])
        .host_env("API_KEY", "k")
        .run();
    offered.assert_error("invalid_input", 2, &["missing_env"]);
    let granted = cell
        .call(&skill)
        .flags(["--params", "{}", "--env", "API_KEY"])
        .host_env("API_KEY", "k")
        .run();
    granted.assert_ok();
}
