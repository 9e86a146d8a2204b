//! The schemas that most skills have, checked without a validator: building one costs more than
//! everything else that is done with the params.
//!
//! Only a yes is an answer. Whatever isn't understood here, in the schema or in a value, is left to
//! the validator, and so is every message.

use serde_json::{Map, Value};

/// Levels of a schema that are looked at; deeper ones are not simple.
const MAX_DEPTH: usize = 16;

/// Whether the schema is a valid one of few keywords, and the value surely fits it.
pub(crate) fn accepts(schema: &Value, value: &Value) -> bool {
    is_simple(schema, MAX_DEPTH) && fits(schema, value)
}

/// Checks the whole schema, also where no value leads: an invalid one is an error of the skill.
fn is_simple(schema: &Value, depth: usize) -> bool {
    let (Some(schema), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return false;
    };
    schema.iter().all(|(key, value)| match key.as_str() {
        "type" => value.as_str().is_some_and(is_type),
        "title" | "description" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "additionalProperties" => value.is_boolean(),
        "properties" => each(value, |schema| is_simple(schema, depth)),
        "items" => is_simple(value, depth),
        "required" => unique_strings(value),
        "enum" => unique_strings(value) && value.as_array().is_some_and(|e| !e.is_empty()),
        _ => false,
    })
}

fn is_type(name: &str) -> bool {
    [
        "object", "array", "string", "integer", "number", "boolean", "null",
    ]
    .contains(&name)
}

fn each(value: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    value.as_object().is_some_and(|m| m.values().all(holds))
}

fn unique_strings(value: &Value) -> bool {
    let Some(items) = value.as_array() else {
        return false;
    };
    items
        .iter()
        .enumerate()
        .all(|(at, item)| item.is_string() && !items[..at].contains(item))
}

fn fits(schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else {
        return false;
    };
    schema
        .iter()
        .all(|(key, rule)| match (key.as_str(), value) {
            ("type", _) => rule.as_str().is_some_and(|name| has_type(name, value)),
            ("enum", _) => rule.as_array().is_some_and(|e| e.contains(value)),
            ("required", Value::Object(members)) => {
                names(rule).all(|name| members.contains_key(name))
            }
            ("properties", Value::Object(members)) => members
                .iter()
                .all(|(name, member)| rule.get(name).is_none_or(|schema| fits(schema, member))),
            ("additionalProperties", Value::Object(members)) => {
                rule == &Value::Bool(true) || members.keys().all(|name| is_named(schema, name))
            }
            ("items", Value::Array(items)) => items.iter().all(|item| fits(rule, item)),
            _ => true,
        })
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn is_named(schema: &Map<String, Value>, name: &str) -> bool {
    schema
        .get("properties")
        .is_some_and(|p| p.get(name).is_some())
}

/// A whole number that is written as a fraction is left to the validator.
fn has_type(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(n) => name == "number" || (name == "integer" && !n.is_f64()),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_usual_schema_needs_no_validator() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {"name": {"type": "string", "description": "whom"}, "n": {"type": "integer", "default": 1},
                "kind": {"enum": ["a", "b"]}, "list": {"type": "array", "items": {"type": "number"}}}});
        assert!(accepts(
            &schema,
            &json!({"name": "x", "n": 2, "kind": "b", "list": [1, 1.5]})
        ));
        for wrong in [
            json!({}),
            json!([]),
            json!({"name": 1}),
            json!({"name": "x", "n": 1.5}),
            json!({"name": "x", "kind": "c"}),
            json!({"name": "x", "list": ["1"]}),
            json!({"name": "x", "more": 1}),
        ] {
            assert!(!accepts(&schema, &wrong), "{wrong}");
        }
    }

    #[test]
    fn schemas_that_are_wrong_or_not_understood_are_left_to_the_validator() {
        for schema in [
            json!({"type": "strin"}),
            json!({"type": ["string", "null"]}),
            json!({"properties": {"unused": {"type": 7}}}),
            json!({"properties": {"unused": {"minimum": 1}}}),
            json!({"required": ["a", "a"]}),
            json!({"required": "a"}),
            json!({"enum": []}),
            json!({"$ref": "#/definitions/a"}),
            json!({"description": 1}),
            json!(true),
        ] {
            assert!(!accepts(&schema, &json!({})), "{schema}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            Just(json!(1.0)),
            Just(json!(1.5)),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[ab]", inner), 0..3)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    fn schema() -> impl Strategy<Value = Value> {
        let keyword = prop_oneof![
            prop::sample::select(vec![
                "object", "array", "string", "integer", "number", "boolean", "null", "other"
            ])
            .prop_map(|t| ("type".to_owned(), json!(t))),
            prop::collection::vec("[ab]", 0..3).prop_map(|n| ("required".to_owned(), json!(n))),
            prop::collection::vec("[ab]", 0..3).prop_map(|n| ("enum".to_owned(), json!(n))),
            any::<bool>().prop_map(|b| ("additionalProperties".to_owned(), json!(b))),
            Just(("description".to_owned(), json!("text"))),
            Just(("minLength".to_owned(), json!(1))),
        ];
        let leaf = prop::collection::vec(keyword.clone(), 0..3)
            .prop_map(|k| Value::Object(k.into_iter().collect()));
        leaf.prop_recursive(3, 16, 3, move |inner| {
            let nested = prop_oneof![
                inner.clone().prop_map(|s| ("items".to_owned(), s)),
                prop::collection::vec(("[ab]", inner), 0..3).prop_map(|m| (
                    "properties".to_owned(),
                    Value::Object(m.into_iter().collect())
                )),
            ];
            (prop::collection::vec(keyword.clone(), 0..3), nested).prop_map(|(mut words, more)| {
                words.push(more);
                Value::Object(words.into_iter().collect())
            })
        })
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_accepted_by_the_validator_too(schema in schema(), value in value()) {
            if accepts(&schema, &value) {
                let validator = jsonschema::options().with_draft(jsonschema::Draft::Draft7).build(&schema);
                let validator = validator.expect("a schema that is simple is valid");
                prop_assert!(validator.is_valid(&value));
                let newest = jsonschema::options().build(&schema).expect("in the newest draft as well");
                prop_assert!(newest.is_valid(&value));
            }
        }
    }
}
