//! The description of the API, from the types that are read and written.

use crate::api::{ApiError, Event, Health, RunRequest, Skills};
use crate::routes::Route;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use skillcell_core::Envelope;
use std::sync::OnceLock;

/// The document, as it is served.
pub fn document() -> &'static [u8] {
    static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
    TEXT.get_or_init(|| value().to_string().into_bytes())
}

/// OpenAPI 3.1.
pub fn value() -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|s| {
            s.definitions_path = "/components/schemas".into();
            s.meta_schema = None;
        })
    };
    let mut read = settings().into_generator();
    let mut written = settings().for_serialize().into_generator();
    let request = named::<RunRequest>(&mut read);
    let envelope = named::<Envelope<Value>>(&mut written);
    let event = named::<Event<Envelope<Value>>>(&mut written);
    let health = named::<Health>(&mut written);
    let skills = named::<Skills>(&mut written);
    let error = named::<ApiError>(&mut written);
    let mut schemas: Map<String, Value> = written.take_definitions(true);
    schemas.extend(read.take_definitions(true));
    schemas.insert(
        "Failure".to_owned(),
        json!({"type": "object", "properties": {"error": error}, "required": ["error"]}),
    );
    let streamed = json!({
        "application/json": {"schema": envelope},
        "application/x-ndjson": {"schema": event},
        "text/event-stream": {"schema": {"type": "string"}},
    });
    let explained = json!({
        "type": "object",
        "description": "What `skillcell explain --json` prints: the plan, or `status` and `error`.",
    });
    let body = json!({"required": true, "content": {"application/json": {
        "schema": request,
        "examples": {"hello": {"value": {"skill": "hello", "params": {"name": "world"}}}},
    }}});
    let paths = Route::ALL.map(|route| {
        let (id, summary, content) = match route {
            Route::Run => (
                "run",
                "Make a call; ask for a stream to see its events",
                streamed.clone(),
            ),
            Route::Explain => (
                "explain",
                "What a call would be allowed; nothing runs",
                json_content(&explained),
            ),
            Route::Skills => (
                "skills",
                "The skills of the daemon's search path",
                json_content(&skills),
            ),
            Route::Health => ("health", "Whether calls are taken", json_content(&health)),
            Route::Metrics => (
                "metrics",
                "What the daemon counts, for Prometheus",
                json!({"text/plain": {"schema": {"type": "string"}}}),
            ),
            Route::OpenApi => (
                "openapi",
                "This document",
                json_content(&json!({"type": "object"})),
            ),
        };
        let posts = route.method() == "POST";
        let mut operation = json!({
            "operationId": id,
            "summary": summary,
            "responses": responses(content, posts),
        });
        if posts {
            operation["requestBody"] = body.clone();
        }
        (
            route.path().to_owned(),
            json!({route.method().to_ascii_lowercase(): operation}),
        )
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Skillcell",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs agent skills, each call in a cell of its own. An answer with status 200 to /v1/run has an envelope, whatever became of the call.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        // Tokens are for TCP; on the unix socket the kernel says who asks.
        "security": [{}, {"token": []}],
        "paths": Map::from_iter(paths),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn json_content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

fn responses(content: Value, posts: bool) -> Value {
    let failure = json_content(&json!({"$ref": "#/components/schemas/Failure"}));
    let mut all = Map::new();
    all.insert(
        "200".to_owned(),
        json!({"description": "Done", "content": content}),
    );
    let mut add = |status: u16, why: &str| {
        let answer = json!({"description": why, "content": failure});
        all.insert(status.to_string(), answer);
    };
    add(400, "No request that can be read");
    add(401, "No token, or an unknown one");
    add(403, "Not for this caller");
    add(404, "There is no such skill for this caller");
    add(405, "Another method than this path takes");
    add(408, "The request took too long to arrive");
    add(411, "The body has no Content-Length");
    add(431, "The head is too long");
    add(500, "The daemon's own fault");
    add(503, "Busy or about to end; nothing was run");
    add(505, "Not HTTP/1.1");
    if posts {
        add(413, "The body is too long");
        add(415, "The body is not JSON");
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    found.push(to.clone());
                }
                map.values().for_each(|v| references(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| references(v, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = value();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for to in found {
            let at = to.strip_prefix('#').unwrap();
            assert!(document.pointer(at).is_some(), "{to}");
        }
    }

    #[test]
    fn unknown_fields_of_a_request_are_not_described_as_allowed() {
        let request = &value()["components"]["schemas"]["RunRequest"];
        assert_eq!(request["additionalProperties"], false);
        assert_eq!(request["required"], json!(["skill"]));
    }
}
