//! PFCP.
