//! Roles: what somebody may do.

use serde::{Deserialize, Serialize};

/// What somebody may do. Each may do what those before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// See the gateway: metrics, and tables that name no subscriber
    View,
    /// See subscribers too: sessions, lines, events
    Support,
    /// Carry out actions, such as ending a session
    Operate,
    /// Change the configuration
    Configure,
}

impl Role {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Support => "support",
            Role::Operate => "operate",
            Role::Configure => "configure",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_rise() {
        assert!(Role::View < Role::Support && Role::Support < Role::Operate);
        assert!(Role::Operate < Role::Configure);
    }
}
