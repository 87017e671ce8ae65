//! PFCP for both planes, without I/O.
#![forbid(unsafe_code)]

pub mod bng;
