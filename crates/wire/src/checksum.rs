//! checksum.
