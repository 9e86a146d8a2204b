//! Answers compared, volatile fields aside.

use serde_json::Value;

/// Removes volatile keys at any depth, and sorts lists that come from a set.
pub fn settle(value: &mut Value, volatile: &[String], unordered: &[String]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !volatile.contains(key));
            for (key, field) in fields.iter_mut() {
                settle(field, volatile, unordered);
                if let (true, Value::Array(items)) = (unordered.contains(key), field) {
                    items.sort_by_key(Value::to_string);
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| settle(item, volatile, unordered)),
        _ => {}
    }
}

/// Every field of `part` is in `whole` with the same value; null stands for absent.
pub fn contains(whole: &Value, part: &Value) -> bool {
    match part {
        Value::Object(fields) => fields
            .iter()
            .all(|(key, field)| contains(&whole[key.as_str()], field)),
        _ => whole == part,
    }
}

#[test]
fn volatile_fields_go_and_the_rest_stays() {
    let mut value = serde_json::json!({"a": {"time": 1, "b": [3, 1]}, "time": 2, "c": [2, 1]});
    settle(&mut value, &["time".into()], &["b".into()]);
    assert_eq!(value, serde_json::json!({"a": {"b": [1, 3]}, "c": [2, 1]}));
    assert!(contains(
        &value,
        &serde_json::json!({"a": {"b": [1, 3]}, "d": null})
    ));
    assert!(!contains(&value, &serde_json::json!({"a": {"b": [1]}})));
}
