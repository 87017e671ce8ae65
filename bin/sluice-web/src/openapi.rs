//! The description of the API (OpenAPI 3.1), made of the catalogue.

use crate::api::{action_path, path, role};
use crate::gateway::ACTIONS;
use crate::query::{DEFAULT_LIMIT, MOST_LIMIT};
use northbound::catalogue::{Action, Argument, Column, Kind, TABLES, Table, Takes, Unit};
use serde_json::{Map, Value, json};

/// The description.
pub fn document() -> Value {
    let mut paths = Map::new();
    paths.insert("/metrics".into(), metrics());
    for table in TABLES {
        paths.insert(path(table), json!({ "get": operation(table) }));
    }
    for action in ACTIONS {
        paths.insert(action_path(action), json!({ "post": order(action) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Tables, actions and metrics of a broadband network gateway",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"problem": {
                "description": "An error (RFC 9457); `detail` says what to do",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
            "schemas": {"Problem": problem()},
        },
    })
}

fn metrics() -> Value {
    json!({"get": {
        "operationId": "metrics",
        "summary": "Metrics in Prometheus' text format",
        "x-sluice-role": "view",
        "responses": {
            "200": {"description": "The metrics", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "default": {"$ref": "#/components/responses/problem"},
        },
    }})
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
    })
}

fn operation(table: &Table) -> Value {
    let own = table.arguments.iter().map(parameter);
    let limit = json!({"name": "limit", "in": "query", "description": "Maximum number of rows",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT, "default": DEFAULT_LIMIT}});
    let cursor = json!({"name": "cursor", "in": "query", "description": "`next` of the page before",
        "schema": {"type": "integer", "minimum": 0, "default": 0}});
    let known = json!({"name": "If-None-Match", "in": "header", "description": "`ETag` of an earlier answer",
        "schema": {"type": "string"}});
    let parameters: Vec<Value> = own.chain([limit, cursor, known]).collect();
    json!({
        "operationId": table.name.replace(' ', "-"),
        "summary": table.about,
        "x-sluice-role": role(table).word(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "A page of the table",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": page(table)}},
            },
            "304": {"description": "The page is as it was"},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn order(action: &Action) -> Value {
    let all = action.arguments.iter();
    let properties: Map<String, Value> = all.clone().map(property).collect();
    let required = all.filter(|argument| argument.required);
    let required: Vec<_> = required.map(|argument| argument.name).collect();
    let body = json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false});
    json!({
        "operationId": action.name.replace(' ', "-"),
        "summary": action.about,
        "x-sluice-role": "operate",
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "204": {"description": "It is done"},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn property(argument: &Argument) -> (String, Value) {
    let mut schema = value(argument);
    schema["description"] = argument.about.into();
    (argument.name.into(), schema)
}

/// The schema of what an argument takes.
fn value(argument: &Argument) -> Value {
    match argument.takes {
        Takes::Nothing => json!({"type": "boolean", "default": false}),
        Takes::Number(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        _ => json!({"type": "string"}),
    }
}

fn parameter(argument: &Argument) -> Value {
    json!({
        "name": argument.name,
        "in": "query",
        "required": argument.required,
        "description": argument.about,
        "schema": value(argument),
    })
}

fn page(table: &Table) -> Value {
    json!({
        "type": "object",
        "required": ["rows", "next", "missing"],
        "properties": {
            "rows": {"type": "array", "items": row(table.columns)},
            "next": {"type": ["integer", "null"], "description": "`cursor` of the next page; null: this is the last one"},
            "missing": {"type": "array", "items": {"type": "string"}, "description": "Why any user plane could not be asked"},
        },
    })
}

/// The schema of a row. A column `a.b` is the member `b` of the object `a`.
fn row(columns: &[Column]) -> Value {
    let mut row = json!({"type": "object", "properties": {}});
    for column in columns.iter().filter(|column| !column.derived) {
        let mut at = &mut row;
        let mut names = column.field.split('.').peekable();
        while let Some(name) = names.next() {
            let last = names.peek().is_none();
            let below = &mut at["properties"][name];
            if last && !below.is_object() {
                *below = schema(column);
            } else if !last && !below["properties"].is_object() {
                // the column of the object itself, if there is one, says whether it is there
                *below = json!({"type": ["object", "null"], "properties": {}});
            }
            at = below;
        }
    }
    row
}

fn schema(column: &Column) -> Value {
    let mut schema = match &column.kind {
        Kind::Text | Kind::Word(_) => json!({"type": ["string", "null"]}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Number(unit) => {
            let mut number = json!({"type": ["integer", "null"], "minimum": 0});
            if let Some(word) = unit_word(*unit) {
                number["x-sluice-unit"] = word.into();
            }
            number
        }
        Kind::Flag(..) => json!({"type": ["boolean", "object", "null"]}),
        Kind::Cell(columns) | Kind::Rows { columns, .. } => {
            json!({"type": "array", "items": row(columns)})
        }
    };
    schema["description"] = column.about.into();
    schema
}

const fn unit_word(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Id | Unit::Exact | Unit::Count => None,
        Unit::PrefixLength => Some("bits"),
        Unit::Octets => Some("octets"),
        Unit::BitsPerSecond => Some("bits per second"),
        Unit::Nanoseconds => Some("nanoseconds"),
        Unit::Microseconds => Some("microseconds"),
        Unit::Seconds | Unit::SecondsAgo => Some("seconds"),
        Unit::Time | Unit::TimeAgo => Some("seconds since 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_described_with_its_arguments_and_columns() {
        let document = document();
        for table in TABLES {
            let operation = &document["paths"][path(table)]["get"];
            assert_eq!(operation["summary"], table.about, "{}", table.name);
            let named = |name: &str| {
                let parameters = operation["parameters"].as_array().unwrap();
                parameters.iter().any(|p| p["name"] == name)
            };
            assert!(table.arguments.iter().all(|argument| named(argument.name)));
            assert!(named("limit") && named("cursor"));
            let page = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            let row = &page["properties"]["rows"]["items"];
            for column in table.columns.iter().filter(|column| !column.derived) {
                let mut names = column.field.split('.');
                let found = names.try_fold(row, |at, name| at["properties"].get(name));
                assert!(found.is_some(), "{}: {}", table.name, column.field);
            }
        }
    }
}
