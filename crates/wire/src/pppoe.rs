//! pppoe.
