//! Local API.
