//! eth.
