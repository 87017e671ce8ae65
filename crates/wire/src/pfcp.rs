//! pfcp.
