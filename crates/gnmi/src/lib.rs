//! gNMI without its sockets: messages, models, paths and values.
//!
//! [`model`] has every data node that is served, made of the configuration's model and of the catalogue of tables, so that nothing is
//! declared twice. [`yang`] writes the models as YANG modules. [`path`] reads the paths that a client sends, [`select`] finds what they
//! lead to, [`value`] encodes and decodes values (RFC 7951). [`operations`] are those of
//! a Set, and [`edits`] makes edits of the configuration of them.
#![forbid(unsafe_code)]

pub mod edits;
pub mod model;
pub mod openconfig;
pub mod operations;
pub mod path;
pub mod select;
pub mod shape;
pub mod value;
pub mod yang;

/// What `protoc` and tonic made of `proto/gnmi`. The specification says what each field is.
#[allow(missing_docs)]
pub mod proto {
    tonic::include_proto!("gnmi");
}

/// What `protoc` made of the extensions.
#[allow(missing_docs)]
pub mod gnmi_ext {
    tonic::include_proto!("gnmi_ext");
}

/// Version of the specification.
pub const VERSION: &str = "0.10.0";
