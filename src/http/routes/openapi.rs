//! The OpenAPI document, made from the route table.

use serde_json::{Map, Value, json};

use super::{Parameter, Route, Success};

/// The document that is committed as `openapi/transparency.json`.
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in super::all() {
        let path = route.path.replace("{*", "{");
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        if let Some(operations) = operations.as_object_mut() {
            operations.insert(route.method.to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Capstan Transparency Service",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "SCRAPI -11 with tlog-tiles. Every error is a problem: CBOR \
                (RFC 9290), or JSON (RFC 9457) when Accept prefers it or takes anything.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": { "Problem": problem_schema() } },
    })
}

fn operation(route: &Route) -> Value {
    let mut responses = Map::new();
    for Success { status, media_types, about } in route.answers {
        let content: Map<String, Value> =
            media_types.iter().map(|t| ((*t).to_owned(), json!({}))).collect();
        let mut response = json!({ "description": about });
        if let (false, Some(response)) = (content.is_empty(), response.as_object_mut()) {
            response.insert("content".to_owned(), Value::Object(content));
        }
        responses.insert(status.to_string(), response);
    }
    for status in route.problems.iter().chain(&[405, 500]) {
        responses.insert(status.to_string(), problem());
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "responses": responses,
    });
    let Some(fields) = operation.as_object_mut() else { return operation };
    if !route.parameters.is_empty() {
        fields.insert("parameters".to_owned(), route.parameters.iter().map(parameter).collect());
    }
    if !route.takes.is_empty() {
        let content: Map<String, Value> = route
            .takes
            .iter()
            .map(|t| {
                ((*t).to_owned(), json!({ "schema": { "type": "string", "format": "binary" } }))
            })
            .collect();
        fields.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let mut schema = json!({ "type": "string" });
    if let (Some(pattern), Some(schema)) = (parameter.pattern, schema.as_object_mut()) {
        schema.insert("pattern".to_owned(), json!(pattern));
    }
    json!({
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.required,
        "description": parameter.about,
        "schema": schema,
    })
}

fn problem() -> Value {
    json!({
        "description": "A problem",
        "content": {
            "application/concise-problem-details+cbor": {},
            "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } },
        },
    })
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "code": { "type": "string" },
            "request_id": { "type": "string" },
            "policy": { "type": "string" },
            "rules": { "type": "array", "items": { "type": "object" } },
        },
    })
}
