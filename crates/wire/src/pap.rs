//! pap.
