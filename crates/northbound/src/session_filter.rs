//! The filter of sessions, read from the arguments that the catalogue declares.

use crate::catalogue::SESSION_FILTER;
use crate::{SessionFilter, time};

impl SessionFilter {
    /// Reads the arguments of [`SESSION_FILTER`] that are given, each by its name. The control plane checks what they say.
    ///
    /// # Errors
    /// A text is empty, or a value is not of its type. An empty text must not mean more sessions than were meant.
    pub fn read(given: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let text = |name: &str| match given(name) {
            Some(value) if value.is_empty() => Err(format!(
                "`{name}` is empty: expected a value, or leave it out"
            )),
            value => Ok(value.unwrap_or_default()),
        };
        let tag = |name: &str| {
            let number = |value: String| {
                let expected = |_| format!("`{name}` is `{value}`: expected a VLAN id");
                value.parse().map_err(expected)
            };
            given(name).map(number).transpose()
        };
        let moment = |name: &str| {
            let read = given(name).map(|value| time::read(&value, time::now()));
            read.transpose()
        };
        Ok(SessionFilter {
            state: text("state")?,
            user: text("user")?,
            user_prefix: text("user-prefix")?,
            network_instance: text("network-instance")?,
            user_plane: text("user-plane")?,
            group: text("group")?,
            port: text("port")?,
            s_tag: tag("s-tag")?,
            c_tag: tag("c-tag")?,
            profile: text("profile")?,
            policy: text("policy")?,
            service: text("service")?,
            address: text("address")?,
            mac: text("mac")?,
            circuit_id: text("circuit-id")?,
            online_before: moment("online-before")?,
            online_after: moment("online-after")?,
        })
    }

    /// Whether it lets every session through.
    pub fn is_empty(&self) -> bool {
        *self == SessionFilter::default()
    }

    /// What is given, each argument with its value, for a log or a table.
    pub fn text(&self) -> String {
        let given = SESSION_FILTER.iter().filter_map(|argument| {
            let value = self.value(argument.name).filter(|v| !v.is_empty())?;
            Some(format!("{} {value}", argument.name))
        });
        given.collect::<Vec<_>>().join(", ")
    }

    /// Value of an argument.
    fn value(&self, argument: &str) -> Option<String> {
        let tag = |id: Option<u32>| id.map(|id| id.to_string());
        match argument {
            "state" => Some(self.state.clone()),
            "user" => Some(self.user.clone()),
            "user-prefix" => Some(self.user_prefix.clone()),
            "network-instance" => Some(self.network_instance.clone()),
            "user-plane" => Some(self.user_plane.clone()),
            "group" => Some(self.group.clone()),
            "port" => Some(self.port.clone()),
            "s-tag" => tag(self.s_tag),
            "c-tag" => tag(self.c_tag),
            "profile" => Some(self.profile.clone()),
            "policy" => Some(self.policy.clone()),
            "service" => Some(self.service.clone()),
            "address" => Some(self.address.clone()),
            "mac" => Some(self.mac.clone()),
            "circuit-id" => Some(self.circuit_id.clone()),
            "online-before" => self.online_before.map(time::moment),
            "online-after" => self.online_after.map(time::moment),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Takes;

    /// A value that an argument takes.
    fn value_of(takes: Takes) -> &'static str {
        match takes {
            Takes::Word(words) => words[0],
            Takes::Number(..) => "7",
            Takes::Time => "2026-11-22 07:15:00Z",
            Takes::Address => "2001:db8::/32",
            _ => "a b",
        }
    }

    #[test]
    fn every_argument_is_read_and_told_again() {
        assert!(SessionFilter::read(|_| None).unwrap().is_empty());
        for argument in SESSION_FILTER {
            let value = value_of(argument.takes);
            let of_it = |name: &str| (name == argument.name).then(|| value.to_owned());
            let filter = SessionFilter::read(of_it).unwrap();
            assert!(!filter.is_empty(), "{}", argument.name);
            assert_eq!(filter.text(), format!("{} {value}", argument.name));
        }
    }

    #[test]
    fn an_empty_value_is_refused_and_never_means_all_sessions() {
        for argument in SESSION_FILTER {
            let empty = |name: &str| (name == argument.name).then(String::new);
            assert!(SessionFilter::read(empty).is_err(), "{}", argument.name);
        }
    }
}
