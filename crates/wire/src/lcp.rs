//! lcp.
