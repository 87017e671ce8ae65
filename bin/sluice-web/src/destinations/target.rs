//! Where a destination is: its URL in the start file.

use axum::http::Uri;
use std::net::IpAddr;

/// How events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Syslog, a message in a datagram (RFC 5426).
    Udp,
    /// Syslog over TCP with counted octets (RFC 6587, section 3.4.1), with TLS (RFC 5425) or without.
    Stream,
    /// HTTP POST of JSON.
    Webhook,
}

/// A destination's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How events are sent.
    pub protocol: Protocol,
    /// Whether TLS protects them.
    pub tls: bool,
    /// Name or address, as it stands in a URL.
    pub host: String,
    /// TCP or UDP port.
    pub port: u16,
    /// Path and query of a webhook. They may have a secret in them.
    pub path: String,
    scheme: String,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// It is none, or none of a destination; the sentence says what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("no URL ({error}): expected {EXPECTED}"))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let (protocol, tls, port) = match scheme {
            "syslog+udp" => (Protocol::Udp, false, None),
            "syslog+tcp" => (Protocol::Stream, false, None),
            "syslog+tls" => (Protocol::Stream, true, Some(6514)),
            "https" => (Protocol::Webhook, true, Some(443)),
            "http" => (Protocol::Webhook, false, Some(80)),
            _ => return Err(format!("no scheme of a destination: expected {EXPECTED}")),
        };
        let has_user = uri.authority().is_some_and(|a| a.as_str().contains('@'));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if has_user || (protocol != Protocol::Webhook && path != "/") {
            return Err(format!(
                "more than scheme, host and port: expected {EXPECTED}"
            ));
        }
        let Some(port) = uri.port_u16().or(port).filter(|port| *port > 0) else {
            return Err("no port: expected such as `:514` behind the host".into());
        };
        let host = uri.host().unwrap_or_default().to_owned();
        let target = Target {
            protocol,
            tls,
            host,
            port,
            path: path.to_owned(),
            scheme: scheme.to_owned(),
        };
        if target.host().is_empty() {
            return Err(format!("no host: expected {EXPECTED}"));
        }
        if protocol == Protocol::Webhook && !tls && !target.is_loopback() {
            return Err(
                "`http` beyond this machine, which anybody on the way could read: expected `https`"
                    .into(),
            );
        }
        Ok(target)
    }

    /// Name or address without the brackets of IPv6.
    pub fn host(&self) -> &str {
        self.host.trim_matches(['[', ']'])
    }

    fn is_loopback(&self) -> bool {
        let address = self.host().parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The URL without the path, which may have a secret in it.
    pub fn shown(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.host, self.port)
    }
}

const EXPECTED: &str =
    "syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT, syslog+tls://HOST:PORT, or https://HOST/PATH";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_and_where_to() {
        for (text, protocol, tls, shown) in [
            (
                "syslog+udp://192.0.2.1:514",
                Protocol::Udp,
                false,
                "syslog+udp://192.0.2.1:514",
            ),
            (
                "syslog+tcp://[2001:db8::1]:601",
                Protocol::Stream,
                false,
                "syslog+tcp://[2001:db8::1]:601",
            ),
            (
                "syslog+tls://logs.example.net",
                Protocol::Stream,
                true,
                "syslog+tls://logs.example.net:6514",
            ),
            (
                "https://crm.example.net/hook?key=hidden",
                Protocol::Webhook,
                true,
                "https://crm.example.net:443",
            ),
            (
                "http://127.0.0.1:8000",
                Protocol::Webhook,
                false,
                "http://127.0.0.1:8000",
            ),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.protocol, target.tls), (protocol, tls), "{text}");
            assert_eq!(target.shown(), shown);
        }
        let hook = Target::parse("https://crm.example.net/hook?key=hidden").unwrap();
        assert_eq!(hook.path, "/hook?key=hidden");
    }

    #[test]
    fn what_is_no_destination_is_refused_with_what_is_expected() {
        for (text, says) in [
            ("", "no URL"),
            ("logs.example.net:514", "no scheme"),
            ("ftp://logs.example.net", "no scheme"),
            ("syslog+udp://192.0.2.1", "no port"),
            ("syslog+tcp://192.0.2.1:0", "no port"),
            ("syslog+tls://logs.example.net/x", "more than"),
            ("https://user:word@crm.example.net/", "more than"),
            ("http://crm.example.net/", "expected `https`"),
            ("http://localhost.example.net/", "expected `https`"),
        ] {
            let said = Target::parse(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
