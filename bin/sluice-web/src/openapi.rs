//! The description of the API (OpenAPI 3.1), made of the catalogue.

use crate::api::{
    CHECK, COMMIT, CONFIRM, action_path, path, role, role_of, scope_of, scope_of_question,
};
use crate::cookie;
use crate::gateway::ACTIONS;
use crate::query::{DEFAULT_LIMIT, MOST_LIMIT};
use crate::questions::{self, QUESTIONS};
use crate::role::Role;
use crate::scope::Scope;
use crate::sign_in::{ME, SIGN_IN, SIGN_OUT};
use crate::{completions, feed, live, records, test_aaa, trace};
use clap::ValueEnum;
use northbound::catalogue::{
    self, Action, Argument, COMMIT_CHECK, COMMIT_CONFIRM, Column, DESTINATIONS, EXPORT_RECORDS,
    Kind, TABLES, TEST_AAA, TOP, TRACE, Table, Takes, Unit, WATCH_EVENTS,
};
use northbound::{MOST_COMMENT, MOST_CONFIRM};
use serde_json::{Map, Value, json};

/// The description.
pub fn document() -> Value {
    let mut paths = Map::new();
    paths.insert("/metrics".into(), metrics());
    for table in TABLES {
        paths.insert(path(table), json!({ "get": operation(table) }));
    }
    for question in QUESTIONS {
        paths.insert(questions::path(question), json!({ "get": ask(question) }));
    }
    paths.insert(
        path(&DESTINATIONS),
        json!({ "get": operation(&DESTINATIONS) }),
    );
    paths.insert(
        live::PATH.into(),
        json!({ "get": stream(&TOP, Role::Support, Scope::Tables, "the `data` of each is the state as a JSON object") }),
    );
    let events = "the `data` of each is an event as in the table `events`, its `id` the number of the event: with it in `Last-Event-ID` a \
                  client goes on where it was. An event of type `lost` says that events behind that number are gone";
    paths.insert(
        feed::PATH.into(),
        json!({ "get": stream(&WATCH_EVENTS, Role::Support, Scope::Events, events) }),
    );
    let messages = "the `data` of each is a message as `sluice trace --json` prints it. An event of type `followed` says which line is \
                    traced, one of type `ended` why it ends and how many were missed";
    paths.insert(
        trace::PATH.into(),
        json!({ "get": stream(&TRACE, role_of(&TRACE), Scope::Trace, messages) }),
    );
    paths.insert(records::PATH.into(), json!({ "get": export() }));
    paths.insert(trace::FILE.into(), json!({ "get": capture() }));
    for action in ACTIONS {
        paths.insert(action_path(action), json!({ "post": order(action) }));
    }
    paths.insert(test_aaa::PATH.into(), json!({ "post": test() }));
    for (path, action) in [(CHECK, &COMMIT_CHECK), (COMMIT, &catalogue::COMMIT)] {
        paths.insert(path.into(), json!({ "post": change(action) }));
    }
    paths.insert(CONFIRM.into(), json!({ "post": confirmation() }));
    paths.insert(completions::PATH.into(), json!({ "post": complete() }));
    paths.insert(SIGN_IN.into(), json!({ "post": sign_in() }));
    paths.insert(SIGN_OUT.into(), json!({ "post": sign_out() }));
    paths.insert(ME.into(), json!({ "get": me() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Tables, actions and metrics of a broadband network gateway",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {"sign-in": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "sign-in": {"type": "apiKey", "in": "cookie", "name": cookie::NAME,
                    "description": "Cookie that a sign-in sets. What changes something has to come from a page of this server (`Origin`)"},
            },
            "responses": {"problem": {
                "description": "An error (RFC 9457); `detail` says what to do",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
            "schemas": {"Problem": problem(), "Caller": caller()},
        },
    })
}

fn metrics() -> Value {
    json!({"get": {
        "operationId": "metrics",
        "summary": "Metrics in Prometheus' text format",
        "x-sluice-role": "view",
        "x-sluice-scope": Scope::Metrics.word(),
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
            "faults": {"type": "array", "items": {"type": "object"}, "description": "Of a commit: each with `path`, `line` and `message`"},
        },
    })
}

fn operation(table: &Table) -> Value {
    let own = table.arguments.iter().map(parameter);
    let limit = json!({"name": "limit", "in": "query", "description": "Maximum number of rows",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT, "default": DEFAULT_LIMIT}});
    let cursor = json!({"name": "cursor", "in": "query", "description": "`next` of the page before",
        "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX, "default": 0}});
    let known = json!({"name": "If-None-Match", "in": "header", "description": "`ETag` of an earlier answer",
        "schema": {"type": "string"}});
    let parameters: Vec<Value> = own.chain([limit, cursor, known]).collect();
    json!({
        "operationId": table.name.replace(' ', "-"),
        "summary": table.about,
        "x-sluice-role": role(table).word(),
        "x-sluice-scope": Scope::Tables.word(),
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
        "x-sluice-role": role_of(action).word(),
        "x-sluice-scope": scope_of(action).word(),
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "What it found, if it says something",
                "content": {"application/json": {"schema": {"type": "object"}}}},
            "204": {"description": "It is done"},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// A test of AAA, whose password is no argument of the declaration.
fn test() -> Value {
    let mut test = order(&TEST_AAA);
    let schema = &mut test["requestBody"]["content"]["application/json"]["schema"];
    schema["properties"]["password"] =
        json!({"type": "string", "format": "password", "description": "The user's password"});
    schema["required"] = json!(["user", "password"]);
    test
}

/// What comes as it changes or happens.
fn stream(action: &Action, role: Role, scope: Scope, data: &str) -> Value {
    let parameters: Vec<Value> = action.arguments.iter().map(parameter).collect();
    json!({
        "operationId": action.name.replace(' ', "-"),
        "summary": action.about,
        "x-sluice-role": role.word(),
        "x-sluice-scope": scope.word(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": format!("Server-sent events; {data}"),
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// Records as lines.
fn export() -> Value {
    let arguments = EXPORT_RECORDS.arguments.iter();
    let parameters: Vec<Value> = arguments.map(parameter).collect();
    json!({
        "operationId": EXPORT_RECORDS.name.replace(' ', "-"),
        "summary": EXPORT_RECORDS.about,
        "x-sluice-role": Role::Support.word(),
        "x-sluice-scope": Scope::Records.word(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "Lines of JSON, each a row of the table `events` of the kind `counted`. An answer that is cut off ends with an \
                                error of the connection",
                "content": {records::MEDIA_TYPE: {"schema": {"type": "string"}}},
            },
            "410": {
                "description": "Records behind `after` may be gone: ask with `since`",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// A trace as a file.
fn capture() -> Value {
    let parameters: Vec<Value> = TRACE.arguments.iter().map(parameter).collect();
    json!({
        "operationId": "trace-file",
        "summary": "Follow a subscriber's control messages and packets, into a file for Wireshark",
        "x-sluice-role": role_of(&TRACE).word(),
        "x-sluice-scope": Scope::Trace.word(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "A file in pcapng, which ends when the time is over",
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// A question about one thing.
fn ask(question: &Action) -> Value {
    let parameters: Vec<Value> = question.arguments.iter().map(parameter).collect();
    json!({
        "operationId": question.name.replace(' ', "-"),
        "summary": question.about,
        "x-sluice-role": "support",
        "x-sluice-scope": scope_of_question(question).word(),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "What `sluice` prints with `--json`; of the configuration `version`, `document` (YAML) and `tree`",
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": {"type": ["object", "array"]}}},
            },
            "304": {"description": "It is as it was"},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// A change of the configuration, or what one would do: both take the same.
fn change(action: &Action) -> Value {
    let body = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "edits": {"type": "array", "items": {"type": "string"},
                "description": "Lines such as `set PATH VALUE` and `delete PATH`, as in `sluice configure`"},
            "base": {"type": "integer", "minimum": 0,
                "description": "Version that the edits start from. What others have changed elsewhere since then is kept [default: the newest]"},
            "document": {"type": ["string", "object"], "description": "The whole configuration: YAML, or an object"},
            "version": {"type": "integer", "minimum": 0, "description": "An earlier version, which comes back"},
            "comment": {"type": "string", "maxLength": MOST_COMMENT, "description": "Why"},
            "confirm-within": {"type": "integer", "minimum": 0, "maximum": MOST_CONFIRM, "default": 0,
                "description": "Seconds within which it has to be confirmed; otherwise the version before comes back. 0: it stays"},
            "end-sessions": {"type": "boolean", "default": false,
                "description": "It may end sessions. Otherwise a change that would is refused"},
        },
        "oneOf": [{"required": ["edits"]}, {"required": ["document"]}, {"required": ["version"]}],
        "dependentRequired": {"base": ["edits"]},
    });
    json!({
        "operationId": action.name.replace(' ', "-"),
        "summary": action.about,
        "x-sluice-role": "configure",
        "x-sluice-scope": Scope::Configuration.word(),
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "`effects` on sessions and user planes; of a commit its `version`, and which user planes do not have it yet \
                                (`pending`); of a check its `faults`, and the whole as it would be (`tree`)",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn confirmation() -> Value {
    json!({
        "operationId": COMMIT_CONFIRM.name.replace(' ', "-"),
        "summary": COMMIT_CONFIRM.about,
        "x-sluice-role": "configure",
        "x-sluice-scope": Scope::Configuration.word(),
        "responses": {
            "200": {
                "description": "The `version` that stays",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// Completions of a line, which is in the body because it may have a secret in it.
fn complete() -> Value {
    let body = json!({
        "type": "object",
        "required": ["line"],
        "additionalProperties": false,
        "properties": {
            "line": {"type": "string", "maxLength": completions::LONGEST_LINE,
                "description": "The line up to the cursor, such as `set limits s`"},
            "edits": {"type": "array", "items": {"type": "string"},
                "description": "The lines above it: what they make can be chosen, too"},
        },
    });
    let option = json!({
        "type": "object",
        "required": ["word", "help"],
        "properties": {
            "word": {"type": "string", "description": "As it is typed"},
            "help": {"type": "string", "description": "What it is; empty for names that the operator has chosen"},
        },
    });
    let answer = json!({
        "type": "object",
        "required": ["begins", "place", "about", "expected", "options", "more"],
        "properties": {
            "begins": {"type": "integer", "description": "Characters of the line before the word that is being typed"},
            "place": {"type": "string", "description": "Where in the configuration the line has got to"},
            "about": {"type": "string", "description": "What is there"},
            "expected": {"type": ["string", "null"], "description": "What may stand next, where it can be said"},
            "options": {"type": "array", "maxItems": completions::MOST_OPTIONS, "items": option,
                "description": "Words that may stand next and begin as what is typed"},
            "more": {"type": "integer", "description": "How many more there are"},
        },
    });
    json!({
        "operationId": "configuration-completions",
        "summary": "What may come next on a line of a change",
        "x-sluice-role": "support",
        "x-sluice-scope": Scope::Configuration.word(),
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "What may come next", "content": {"application/json": {"schema": answer}}},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

/// Who somebody is.
fn caller() -> Value {
    let roles = Role::value_variants().iter();
    let roles: Vec<_> = roles.map(|role| role.word()).collect();
    let scopes = Scope::value_variants().iter();
    let scopes: Vec<_> = scopes.map(|scope| scope.word()).collect();
    json!({
        "type": "object",
        "required": ["name", "role", "scopes", "expires"],
        "properties": {
            "name": {"type": "string", "description": "Name of the user or token, or the one that a link gives"},
            "role": {"type": "string", "enum": roles},
            "scopes": {"type": "array", "items": {"type": "string", "enum": scopes},
                "description": "What the token may be used for; empty: everything that the role allows"},
            "expires": {"type": ["string", "null"], "format": "date-time",
                "description": "When the sign-in or token expires; null: never"},
        },
    })
}

fn sign_in() -> Value {
    let object = |properties: Value, required: Value| json!({"type": "object", "additionalProperties": false, "properties": properties, "required": required});
    let text = |about| json!({"type": "string", "description": about});
    let password =
        json!({"type": "string", "format": "password", "description": "The user's password"});
    let body = json!({"oneOf": [
        object(
            json!({"user": text("Name of a user"), "password": password}),
            json!(["user", "password"])
        ),
        object(json!({"link": text("Secret of a one-time link")}), json!(["link"])),
    ]});
    json!({
        "operationId": "sign-in",
        "summary": "Sign in with a password or a one-time link",
        "security": [],
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "Who is signed in, and until when",
                "headers": {"Set-Cookie": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Caller"}}},
            },
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn sign_out() -> Value {
    json!({
        "operationId": "sign-out",
        "summary": "End the sign-in",
        "security": [{"sign-in": []}],
        "x-sluice-role": "view",
        "responses": {
            "204": {"description": "It has ended", "headers": {"Set-Cookie": {"schema": {"type": "string"}}}},
            "default": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn me() -> Value {
    json!({
        "operationId": "me",
        "summary": "Who the caller is, and until when",
        "x-sluice-role": "view",
        "responses": {
            "200": {
                "description": "The caller",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Caller"}}},
            },
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
        // without it there is nothing to do
        Takes::Nothing if argument.required => json!({"type": "boolean", "const": true}),
        Takes::Nothing => json!({"type": "boolean", "default": false}),
        Takes::Number(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Takes::Word(words) => json!({"type": "string", "enum": words}),
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
            "total": {"type": "integer", "description": "Of `sessions`, on the first page: how many there are on all pages. Of `events`: how many match"},
            "or_more": {"type": "boolean", "description": "Of `events`: `total` is not exact, and more may match. 10,000 were counted, or to count on would take long. Absent: `total` is exact"},
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
