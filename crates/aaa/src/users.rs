//! The users file: the embedded default where there is no RADIUS server.
