//! Skills with a real offline answer.

use crate::compare::{contains, settle};
use crate::venv;
use serde_json::Value;
use skillcell_tests::{Cell, Child};
use std::path::Path;

/// Every case of one skill: plain first, then in a cell, then compared.
fn same_answer_as_in_plain_python(id: &str) {
    let _shared = skillcell_tests::shared();
    let cell = venv::cell();
    let cases = cases(&cell);
    let cases = cases[id]
        .as_array()
        .unwrap_or_else(|| panic!("cases.py has no {id}"));
    assert!(!cases.is_empty());
    for case in cases {
        check(&cell, id, case);
    }
}

fn cases(cell: &Cell) -> Value {
    let mut command = cell.command(venv::venv().join("bin/python"));
    command
        .arg("-B")
        .arg(venv::script("cases.py"))
        .arg(venv::skills())
        .arg(cell.path("work"))
        // Packages leave files of their own there, which are not the call's.
        .env("TMPDIR", cell.path("work"));
    let made = Child::spawn(command, None)
        .finish()
        .expect_success("cases.py");
    serde_json::from_str(&made.stdout).expect("cases.py prints JSON")
}

fn check(cell: &Cell, id: &str, case: &Value) {
    let (volatile, unordered, flags) = (
        strings(&case["volatile"]),
        strings(&case["unordered"]),
        strings(&case["flags"]),
    );
    let mut plain = plain(cell, id, &case["params"], &flags);
    assert!(
        contains(&plain, &case["expect"]),
        "{id} in plain Python gives {plain}"
    );
    let outputs = strings(&case["outputs"]);
    let sizes: Vec<u64> = outputs.iter().map(|path| take_away(path)).collect();

    let outcome = venv::call(cell, id)
        .params(&case["params"])
        .flags(&flags)
        .run();
    let mut result = outcome.assert_ok().clone();
    settle(&mut plain, &volatile, &unordered);
    settle(&mut result, &volatile, &unordered);
    assert_eq!(
        result,
        plain,
        "{id} with {}\n{}",
        case["params"],
        outcome.show()
    );
    for (path, plain_size) in outputs.iter().zip(sizes) {
        let size = take_away(path);
        // Documents hold times and ids; the same content has nearly the same size.
        assert!(
            size.abs_diff(plain_size) * 50 <= plain_size,
            "{path} has {size} bytes, plain {plain_size}"
        );
    }
    for host in strings(&case["denials"]) {
        outcome.assert_denial("network", &host);
    }
}

/// The answer of the same skill without a cell.
fn plain(cell: &Cell, id: &str, params: &Value, flags: &[String]) -> Value {
    let answer = cell.path("work/answer.json");
    let env: Vec<_> = flags
        .iter()
        .filter_map(|flag| {
            flag.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        })
        .collect();
    let arguments = [
        venv::script("plain.py"),
        venv::skills().join(id),
        answer.clone(),
    ];
    let arguments: Vec<&Path> = arguments.iter().map(AsRef::as_ref).collect();
    venv::offline_python(cell, &env, &arguments, &params.to_string()).expect_success(id);
    let text = std::fs::read_to_string(&answer).expect("plain.py writes its answer");
    std::fs::remove_file(&answer).expect("own file");
    serde_json::from_str(&text).expect("the answer is JSON")
}

/// Size of an output, which is removed so that the next run has to make it itself.
fn take_away(path: &str) -> u64 {
    let size = std::fs::metadata(path)
        .unwrap_or_else(|e| panic!("{path} was not written: {e}"))
        .len();
    assert!(size > 0, "{path} is empty");
    std::fs::remove_file(path).expect("own file");
    size
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

macro_rules! same_answer {
    ($($name:ident: $id:literal,)*) => {
        /// The cases cover exactly the skills that have a test.
        #[test]
        fn every_case_has_a_test() {
            let cases = cases(&venv::cell());
            let mut with_cases: Vec<_> = cases.as_object().expect("an object").keys().cloned().collect();
            let mut with_test = vec![$($id.to_owned()),*];
            with_cases.sort();
            with_test.sort();
            assert_eq!(with_cases, with_test);
        }

        $(#[test]
        fn $name() {
            same_answer_as_in_plain_python($id);
        })*
    };
}

same_answer! {
    deceptive_ui_guard_answers_as_in_plain_python: "security/deceptive_ui_guard",
    deck_builder_answers_as_in_plain_python: "creative/deck_builder",
    deepfake_guard_answers_as_in_plain_python: "security/deepfake_guard",
    korean_slang_answers_as_in_plain_python: "linguistics/korean_slang",
    kpi_gate_answers_with_its_expected_findings: "monitoring/kpi_gate",
    mental_coach_answers_as_in_plain_python: "wellness/mental_coach",
    mica_module_answers_as_in_plain_python: "compliance/mica_module",
    pdf_form_filler_answers_as_in_plain_python: "office/pdf_form_filler",
    prompt_injection_firewall_answers_as_in_plain_python: "security/prompt_injection_firewall",
    prompt_rewriter_answers_as_in_plain_python: "optimization/prompt_rewriter",
    semantic_web_proxy_answers_as_in_plain_python: "data_engineering/semantic_web_proxy",
    sequence_ops_answers_as_in_plain_python: "bio/sequence_ops",
    telemetry_normalizer_answers_as_in_plain_python: "data_engineering/telemetry_normalizer",
    token_limiter_answers_as_in_plain_python: "monitoring/token_limiter",
    wallet_screening_answers_as_in_plain_python_and_tells_what_it_could_not_reach: "finance/wallet_screening",
    web_form_mapper_answers_as_in_plain_python: "office/web_form_mapper",
}
