use crate::{example, json, skillcell, stdout};
use serde_json::Value;

const NAMES: [&str; 5] = ["manifest", "security-policy", "policy", "envelope", "audit"];

fn schema(name: &str) -> Value {
    let output = skillcell(&["schema", name]);
    assert_eq!(output.status.code(), Some(0), "{name}");
    json(&output)
}

fn assert_valid(schema: &Value, instance: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(instance)
        .map(|e| format!("{e} at {}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{instance:#}");
}

#[test]
fn every_schema_is_a_json_schema() {
    let listed = stdout(&skillcell(&["schema"]));
    let all = json(&skillcell(&["schema", "--json"]));
    for name in NAMES {
        let schema = schema(name);
        assert!(listed.contains(name));
        assert_eq!(all[name], schema);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        jsonschema::validator_for(&schema).unwrap();
    }
    assert_eq!(schema("security_policy"), schema("security-policy"));
}

#[test]
fn the_envelope_has_the_fields_of_the_contract() {
    let schema = schema("envelope");
    let required: Vec<&str> = schema["required"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let contract = [
        "run_id",
        "skill",
        "status",
        "result",
        "error",
        "denials",
        "enforcement",
        "usage",
        "audit",
    ];
    assert_eq!(required, contract);
}

#[test]
fn real_envelopes_match_the_schema() {
    let schema = schema("envelope");
    let hello = example("hello");
    let hello = hello.to_str().unwrap();
    for args in [
        &["run", hello, "--params", r#"{"name": "x"}"#, "--json"][..],
        &["run", hello, "--params", "[", "--json"],
        &["run", "no/such_skill", "--json"],
    ] {
        assert_valid(&schema, &json(&skillcell(args)));
    }
}

#[test]
fn events_of_every_kind_match_the_schema_and_nothing_else_does() {
    use skillcell_audit::{Anchor, Event, Folder, Retention};
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path());
    crate::samples::call(&folder, 1, "a/b", skillcell_core::Status::Denied);
    let recorder = crate::samples::recorder(&folder, Retention::default(), crate::samples::run(2));
    for event in [
        Event::Recovered { torn_bytes: 7 },
        Event::Pruned(Anchor {
            segment: 3,
            seq: 900,
            hash: "0".repeat(64),
        }),
    ] {
        recorder.decide(None, &event).unwrap();
    }
    let refused = crate::samples::refused("a/b", &["/srv"]);
    recorder.decide(None, &refused).unwrap();
    let schema = schema("audit");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    let log = std::fs::read_to_string(folder.segment(1).path).unwrap();
    for line in log.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_valid(&schema, &record);
        kinds.insert(record["event"].as_str().unwrap().to_owned());
        for (pointer, wrong) in [
            ("/event", serde_json::json!("party")),
            ("/seq", serde_json::json!(-1)),
            ("/hash", Value::Null),
            ("/data", serde_json::json!([1])),
        ] {
            let mut record = record.clone();
            *record.pointer_mut(pointer).unwrap() = wrong;
            assert!(!validator.is_valid(&record), "{pointer}: {record:#}");
        }
    }
    let all: std::collections::BTreeSet<String> =
        Event::KINDS.iter().map(|k| (*k).to_owned()).collect();
    assert_eq!(kinds, all);
}

#[test]
fn policies_that_are_read_match_the_schemas() {
    let policy = serde_json::json!({
        "version": 1,
        "defaults": {
            "isolation": {"minimum": "process"},
            "network": {"egress": [{"domains": ["*.example.com"], "ports": [443]}]},
            "filesystem": {"read": ["/srv"], "scratch": "64MiB"},
            "env": ["API_KEY"],
            "resources": {"timeout": "30s", "cpu": 0.5, "memory": "256MiB", "processes": 32},
            "dependencies": {"source_builds": false},
        },
        "tiers": {"core": {"trust": "allow"}},
        "categories": {"finance/*": {"resources": {"timeout": "5s"}}},
    });
    assert_valid(&schema("policy"), &policy);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("skillcell.yaml");
    std::fs::write(&file, policy.to_string()).unwrap();
    let output = skillcell(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let own = serde_json::json!({
        "version": 1,
        "network": {"egress": [{"cidrs": ["203.0.113.0/24"], "ports": [5432]}]},
        "filesystem": {"params": {"pdf_path": "read"}, "scratch": "64MiB"},
        "env": ["API_KEY"],
        "resources": {"timeout": "30s", "cpu": 1, "memory": "256MiB", "processes": 32, "output": "1MiB"},
    });
    assert_valid(&schema("security-policy"), &own);
    for execution in [
        serde_json::json!("sandbox"),
        serde_json::json!({"command": ["node", "main.js"]}),
    ] {
        let manifest = serde_json::json!({
            "name": "a/b", "version": "1.0", "execution": execution, "tags": ["anything"],
            "parameters": {"type": "object"}, "requirements": ["requests"],
            "env_vars": {"API_KEY": {"required": true, "description": "x"}}, "security_policy": own,
        });
        assert_valid(&schema("manifest"), &manifest);
    }
}
