//! Names by which clients call this server. A request for another name is refused: a web page that has its own name resolve to
//! this machine (DNS rebinding) reaches nothing.

/// The names.
#[derive(Clone, Debug)]
pub struct Audience(Vec<String>);

impl Audience {
    /// Of the start file's `hosts`.
    pub fn new(hosts: &[String]) -> Self {
        Audience(hosts.iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    /// Whether a request for this host, with a port or without, is for this server.
    pub fn has(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.0.iter().any(|name| {
            let rest = host.strip_prefix(name.as_str());
            rest.is_some_and(|rest| match rest.strip_prefix(':') {
                Some(port) => port.parse::<u16>().is_ok(),
                None => rest.is_empty(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_configured_names_are_served() {
        let hosts = ["localhost", "127.0.0.1", "[::1]", "GW.example.net"].map(String::from);
        let audience = Audience::new(&hosts);
        for right in [
            "localhost",
            "localhost:8443",
            "LOCALHOST",
            "127.0.0.1:8443",
            "[::1]:8443",
            "[::1]",
            "gw.example.net",
        ] {
            assert!(audience.has(right), "{right}");
        }
        for wrong in [
            "",
            "localhost.evil.example",
            "localhost:",
            "localhost:x",
            "localhost:8443:1",
            "localhost:99999",
            "127.0.0.10",
            "evil.example",
            "::1",
        ] {
            assert!(!audience.has(wrong), "{wrong}");
        }
    }
}
