//! ipcp.
