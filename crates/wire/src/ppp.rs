//! ppp.
