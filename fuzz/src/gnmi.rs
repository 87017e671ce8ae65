//! [`gnmi`]: any Set of a client, and the edits of the configuration that come of it.
//!
//! An input is a `SetRequest` in protobuf.
use config::check;
use gnmi::edits::edits;
use gnmi::operations::operations;
use gnmi::proto::typed_value::Value;
use gnmi::proto::{Path, PathElem, SetRequest, TypedValue, Update};
use prost::Message;

/// Requests to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let element = |name: &str, key: &str| PathElem {
        name: name.into(),
        key: [("name".to_owned(), key.to_owned())]
            .into_iter()
            .filter(|(_, key)| !key.is_empty())
            .collect(),
    };
    let path = |steps: &[(&str, &str)]| Path {
        elem: steps.iter().map(|(name, key)| element(name, key)).collect(),
        ..Path::default()
    };
    let pools = [("configuration", ""), ("ipv4-pools", "homes")];
    let update = |steps: &[_], value| Update {
        path: Some(path(steps)),
        val: Some(TypedValue { value: Some(value) }),
        ..Update::default()
    };
    let json = |text: &str| Value::JsonIetfVal(text.as_bytes().to_vec());
    let requests = [
        SetRequest {
            delete: vec![path(&pools), path(&[("configuration", ""), ("users", "*")])],
            ..SetRequest::default()
        },
        SetRequest {
            prefix: Some(path(&pools[..1])),
            replace: vec![update(
                &pools[1..],
                json(r#"{"prefix": "100.64.0.0/16", "net-length": 26}"#),
            )],
            update: vec![update(
                &[("acls", "base"), ("rules", "10"), ("value", "")],
                Value::StringVal("permit ip from any to any".into()),
            )],
            ..SetRequest::default()
        },
        SetRequest {
            replace: vec![update(
                &pools[..1],
                json(
                    r#"{"sluice-configuration:network-instances": [{"name": "default", "gateway": ["100.64.0.1"]}]}"#,
                ),
            )],
            ..SetRequest::default()
        },
    ];
    requests.iter().map(Message::encode_to_vec).collect()
}

/// Reads a request and carries out its edits.
///
/// # Panics
/// If an edit cannot be carried out, or an error does not begin with a path.
pub fn run(input: &[u8]) {
    let Ok(request) = SetRequest::decode(input) else {
        return;
    };
    let Ok(operations) = operations(&request) else {
        return;
    };
    let example = include_str!("../../deploy/examples/sluice.yaml");
    let mut tree = check::read(example).expect("the example is good").tree;
    match edits(&tree, &operations) {
        Ok(edits) => {
            for edit in edits {
                edit.apply(&mut tree).expect("it was tried before");
            }
        }
        Err(why) => assert!(why.starts_with('/'), "{why}"),
    }
}
