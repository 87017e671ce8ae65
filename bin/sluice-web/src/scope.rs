//! Scopes: what a token may be used for. A token without scopes may be used for everything that its role allows.

use crate::role::Role;
use serde::{Deserialize, Serialize};

/// What a token may be used for. Its role bounds what it may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Scrape the metrics
    Metrics,
    /// Read tables, answers about one thing, and the state as it changes
    Tables,
    /// Follow events as they happen
    Events,
    /// Export records of sessions
    Records,
    /// Follow the messages and packets of a subscriber
    Trace,
    /// Carry out actions that do not change the configuration
    Actions,
    /// Read, check and change the configuration
    Configuration,
    /// Make calls of gNMI
    Gnmi,
}

impl Scope {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Scope::Metrics => "metrics",
            Scope::Tables => "tables",
            Scope::Events => "events",
            Scope::Records => "records",
            Scope::Trace => "trace",
            Scope::Actions => "actions",
            Scope::Configuration => "configuration",
            Scope::Gnmi => "gnmi",
        }
    }

    /// The lowest role that may do anything there.
    pub const fn least(self) -> Role {
        match self {
            Scope::Metrics | Scope::Tables | Scope::Gnmi => Role::View,
            Scope::Events | Scope::Records | Scope::Configuration => Role::Support,
            Scope::Trace | Scope::Actions => Role::Operate,
        }
    }

    /// Refuses scopes in which a role may do nothing: whoever makes such a token has made a mistake.
    ///
    /// # Errors
    /// There is one; the sentence says which role it needs.
    pub fn check(scopes: &[Scope], role: Role) -> Result<(), String> {
        match scopes.iter().find(|scope| role < scope.least()) {
            None => Ok(()),
            Some(scope) => Err(format!(
                "the role {} may do nothing in the scope {}: leave the scope out, or choose the role {}",
                role.word(),
                scope.word(),
                scope.least().word()
            )),
        }
    }
}

/// Names of scopes, for people.
pub fn words(scopes: &[Scope]) -> String {
    let words: Vec<_> = scopes.iter().map(|scope| scope.word()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn a_scope_is_called_the_same_everywhere() {
        for scope in Scope::value_variants() {
            let typed = scope.to_possible_value().unwrap();
            assert_eq!(typed.get_name(), scope.word());
            assert_eq!(serde_json::json!(scope), scope.word());
        }
    }

    #[test]
    fn a_role_has_to_be_enough_for_every_scope() {
        let check = |scopes: &[Scope], role| Scope::check(scopes, role);
        assert_eq!(check(&[Scope::Metrics, Scope::Tables], Role::View), Ok(()));
        assert_eq!(check(&[], Role::View), Ok(()));
        let said = check(&[Scope::Metrics, Scope::Actions], Role::Support).unwrap_err();
        assert!(
            said.contains("actions") && said.contains("operate"),
            "{said}"
        );
    }
}
