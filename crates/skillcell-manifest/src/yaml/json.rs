//! Tree to JSON, for what is JSON by contract (the schema of params).

use super::{Node, Resolved, Value};
use crate::error::clean;
use serde_json::{Map, Number, Value as Json};
use skillcell_core::Location;

impl Node {
    /// Keys become their text. A number that JSON can't hold is an error with its place.
    pub fn to_json(&self) -> Result<Json, (String, Location)> {
        Ok(match &self.value {
            Value::Sequence(items) => {
                Json::Array(items.iter().map(Node::to_json).collect::<Result<_, _>>()?)
            }
            Value::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for entry in entries {
                    map.insert(entry.key.clone(), entry.value.to_json()?);
                }
                Json::Object(map)
            }
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Null => Json::Null,
                Resolved::Bool(value) => Json::Bool(value),
                Resolved::Unsigned(value) => Json::Number(value.into()),
                Resolved::Signed(value) => Json::Number(value.into()),
                Resolved::Text(text) => Json::String(text.to_owned()),
                Resolved::Float(value) => match Number::from_f64(value) {
                    Some(number) => Json::Number(number),
                    None => {
                        let text = clean(&scalar.text);
                        return Err((
                            format!("`{text}` is not a number that JSON has"),
                            self.location,
                        ));
                    }
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use serde_json::json;

    #[test]
    fn yaml_becomes_json_by_the_core_schema() {
        let node = parse("a: off\nb: [1, -2, 1.5, ~, true, '1']\n3: {x: }\n").unwrap();
        let want = json!({"a": "off", "b": [1, -2, 1.5, null, true, "1"], "3": {"x": null}});
        assert_eq!(node.to_json().unwrap(), want);
    }

    #[test]
    fn numbers_that_json_lacks_are_errors_with_a_place() {
        for text in [".nan", ".inf", "-.inf", "1e999"] {
            let node = parse(&format!("a:\n  b: {text}\n")).unwrap();
            let (message, location) = node.to_json().unwrap_err();
            assert!(message.contains(text), "{message}");
            assert_eq!(location.to_string(), "2:6");
        }
    }
}
