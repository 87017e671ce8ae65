//! How sessions are attached.

/// How a session is attached to its access line: what tells its frames from those of other sessions on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// PPPoE session id, 1 to 65,534 (RFC 2516 §4).
    Pppoe(u16),
}
