//! The catalogue says what the protobuf messages and services say.

use northbound::catalogue::{
    ACCOUNTS, ACTIONS, Column, DAEMONS, Kind, LINES, Metric, PROTECTION, Place, QUEUES,
    SUBSCRIBERS, TABLES, Table, WORKERS,
};
use northbound::{DaemonRow, LineRow, QueueRow, SubscriberRow, WorkerRow};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, BTreeSet};

type Names = BTreeSet<String>;

/// What `protoc` understood.
struct Protocol {
    messages: BTreeMap<String, DescriptorProto>,
    /// The values of each enumeration as words.
    enumerations: BTreeMap<String, Names>,
    methods: Names,
}

fn protocol() -> Protocol {
    let octets = include_bytes!(concat!(env!("OUT_DIR"), "/sluice.v1.bin"));
    let set = FileDescriptorSet::decode(&octets[..]).unwrap();
    let (mut messages, mut enumerations) = (BTreeMap::new(), BTreeMap::new());
    let mut methods = Names::new();
    for file in set.file {
        let package = file.package().to_owned();
        for service in &file.service {
            let method =
                |m: &prost_types::MethodDescriptorProto| format!("{}/{}", service.name(), m.name());
            methods.extend(service.method.iter().map(method));
        }
        for e in file.enum_type {
            let unspecified = e.value[0].name().to_owned();
            let prefix = unspecified.strip_suffix("UNSPECIFIED").unwrap();
            let word = |name: &str| {
                let name = name.strip_prefix(prefix).unwrap();
                name.to_lowercase().replace('_', "-")
            };
            let words = e.value.iter().map(|value| word(value.name())).collect();
            enumerations.insert(format!(".{package}.{}", e.name()), words);
        }
        for message in file.message_type {
            messages.insert(format!(".{package}.{}", message.name()), message);
        }
    }
    Protocol {
        messages,
        enumerations,
        methods,
    }
}

fn is_repeated(field: &FieldDescriptorProto) -> bool {
    field.label() == Label::Repeated
}

impl Protocol {
    /// A field of a message by its path.
    fn field(&self, message: &str, path: &str) -> Option<&FieldDescriptorProto> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let fields = &self.messages[message].field;
        let field = fields.iter().find(|field| field.name() == first)?;
        match rest {
            "" => Some(field),
            rest => self.field(field.type_name(), rest),
        }
    }

    /// The paths of everything that a message says; lists are one field each.
    fn leaves(&self, message: &str) -> Names {
        let mut all = Names::new();
        for field in &self.messages[message].field {
            if field.r#type() == Type::Message && !is_repeated(field) {
                let below = self.leaves(field.type_name()).into_iter();
                all.extend(below.map(|path| format!("{}.{path}", field.name())));
            } else {
                all.insert(field.name().to_owned());
            }
        }
        all
    }

    /// Whether a column is of the type of its field.
    fn fits(&self, column: &Column, field: &FieldDescriptorProto) -> bool {
        let of = (field.r#type(), is_repeated(field));
        match &column.kind {
            Kind::Text => of == (Type::String, false),
            Kind::Texts => of == (Type::String, true),
            Kind::Number(_) => matches!(of, (Type::Uint32 | Type::Uint64, false)),
            Kind::Flag(..) => matches!(of, (Type::Bool | Type::Message, false)),
            Kind::Word(words) => {
                let known = self.enumerations.get(field.type_name());
                known.is_some_and(|known| words.iter().all(|(word, _)| known.contains(*word)))
            }
            Kind::Cell(columns) | Kind::Rows { columns, .. } => {
                assert_eq!(of, (Type::Message, true), "{}", column.field);
                self.check(field.type_name(), columns);
                assert_eq!(self.leaves(field.type_name()), fields(columns));
                true
            }
        }
    }

    /// Every column is a field of the message, of its type.
    fn check(&self, message: &str, columns: &[Column]) {
        for column in columns.iter().filter(|column| !column.derived) {
            let field = self.field(message, column.field);
            let field = field.unwrap_or_else(|| panic!("{message} has no {}", column.field));
            assert!(self.fits(column, field), "{message}: {column:?}");
        }
    }
}

fn fields(columns: &[Column]) -> Names {
    let of_row = columns.iter().filter(|column| !column.derived);
    of_row.map(|column| column.field.to_owned()).collect()
}

fn all_tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().copied().chain([&ACCOUNTS])
}

#[test]
fn every_field_of_a_row_is_a_column_of_its_type() {
    let protocol = protocol();
    let mut shown: BTreeMap<String, Names> = BTreeMap::new();
    for table in all_tables() {
        let Some(message) = table.message else {
            continue;
        };
        let message = format!(".sluice.v1.{message}");
        protocol.check(&message, table.columns);
        let shown = shown.entry(message).or_default();
        shown.extend(fields(table.columns));
    }
    for (message, shown) in shown {
        let missing = protocol.leaves(&message);
        let missing: Vec<_> = missing.difference(&shown).cloned().collect();
        assert_eq!(missing, [""; 0], "fields of {message} that no table has");
    }
}

#[test]
fn rows_that_the_client_makes_have_their_columns() {
    let rows = [
        (
            &SUBSCRIBERS,
            serde_json::to_value(SubscriberRow::default()).unwrap(),
        ),
        (&LINES, serde_json::to_value(LineRow::default()).unwrap()),
        (&QUEUES, serde_json::to_value(QueueRow::default()).unwrap()),
        (
            &DAEMONS,
            serde_json::to_value(DaemonRow::default()).unwrap(),
        ),
        (
            &WORKERS,
            serde_json::to_value(WorkerRow::default()).unwrap(),
        ),
    ];
    for (table, row) in rows {
        let made: Names = row.as_object().unwrap().keys().cloned().collect();
        let shown = fields(table.columns).into_iter();
        let shown: Names = shown
            .map(|field| field.split('.').next().unwrap().to_owned())
            .collect();
        assert_eq!(made, shown, "{}", table.name);
    }
    let made = all_tables().filter(|table| table.message.is_none());
    assert_eq!(
        made.count(),
        5,
        "a table without a message has its row here"
    );
}

#[test]
fn every_method_is_of_a_table_or_an_action() {
    let of_tables = TABLES.iter().flat_map(|table| table.calls);
    let of_actions = ACTIONS.iter().flat_map(|action| action.calls);
    let declared: Names = of_tables
        .chain(of_actions)
        .map(ToString::to_string)
        .collect();
    assert_eq!(declared, protocol().methods);
}

#[test]
fn names_keys_and_headings_name_one_thing() {
    let names = all_tables().map(|table| table.name);
    let names: Vec<_> = names.chain(ACTIONS.iter().map(|a| a.name)).collect();
    assert_eq!(BTreeSet::from_iter(&names).len(), names.len(), "{names:?}");
    for table in all_tables() {
        let mut headings = BTreeSet::new();
        for column in table.columns {
            if let Place::Under(heading, _) = column.place {
                assert!(headings.insert(heading), "{}: {heading}", table.name);
            }
        }
        for column in table.columns {
            let Kind::Rows { columns, repeated } = &column.kind else {
                continue;
            };
            for below in *columns {
                if let Place::Under(heading, _) = below.place {
                    assert!(headings.contains(heading), "{}: {heading}", table.name);
                }
            }
            let known = fields(table.columns);
            assert!(repeated.iter().all(|field| known.contains(*field)));
        }
        let known = fields(table.columns);
        assert!(
            table.key.iter().all(|key| known.contains(*key)),
            "{table:?}"
        );
    }
}

/// Methods that look at every session.
const WALKS: [&str; 4] = [
    "ControlPlane/CountSessions",
    "ControlPlane/ListSessions",
    "ControlPlane/ListUserPlanes",
    "Tables/ListPolicies",
];

#[test]
fn metrics_are_numbers_flags_and_words_and_never_those_of_a_subscriber() {
    for table in all_tables() {
        let is = |metric| move |column: &&Column| column.metric == metric;
        let labels: Vec<_> = table.columns.iter().filter(is(Metric::Label)).collect();
        let values = table.columns.iter();
        let mut values = values.filter(|c| matches!(c.metric, Metric::Counter | Metric::Gauge));
        for column in table.columns.iter().filter(|c| c.metric != Metric::None) {
            let fits = match column.metric {
                Metric::Counter => matches!(column.kind, Kind::Number(_)),
                Metric::Gauge => matches!(
                    column.kind,
                    Kind::Number(_) | Kind::Flag(..) | Kind::Word(_)
                ),
                _ => matches!(column.kind, Kind::Number(_) | Kind::Text | Kind::Word(_)),
            };
            assert!(fits && !column.derived, "{}: {column:?}", table.name);
            let asked = table.arguments.iter().any(|argument| argument.required);
            assert!(!asked, "{}: nobody gives its arguments", table.name);
        }
        let walks = |call: &&str| WALKS.contains(call);
        let has_metrics = table.has_metrics();
        assert!(
            !has_metrics || !table.calls.iter().any(walks),
            "{}",
            table.name
        );
        if table.subscribers {
            assert!(
                values.next().is_none(),
                "{}: only its rows are counted",
                table.name
            );
            let fields = labels.iter().map(|column| column.field);
            let known = ["user_plane", "kind", "level"];
            assert!(
                fields.clone().all(|field| known.contains(&field)),
                "{}",
                table.name
            );
            assert!(
                labels.is_empty() || table.name == PROTECTION.name,
                "{}",
                table.name
            );
        } else if values.next().is_some() {
            // otherwise rows are added up that are of different things
            let told = labels.iter().map(|column| column.field);
            let told: BTreeSet<_> = told.collect();
            assert!(
                table.key.iter().all(|key| told.contains(key)),
                "{}",
                table.name
            );
        }
    }
}
