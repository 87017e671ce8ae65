//! Routes to networks behind a subscriber's router, in the text of Framed-Route and Framed-IPv6-Route.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use core::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use wire::radius::Kind;

/// Route of Framed-Route or Framed-IPv6-Route: a network behind the peer (RFC 2865 §5.22, RFC 3162 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FramedRoute {
    /// The network, without host bits.
    pub net: IpNet,
    /// The first metric. `None`: none said.
    pub metric: Option<u32>,
}

impl FramedRoute {
    /// The attribute that has routes of this address family.
    pub(crate) fn kind(&self) -> Kind {
        match self.net {
            IpNet::V4(_) => Kind::FRAMED_ROUTE,
            IpNet::V6(_) => Kind::FRAMED_IPV6_ROUTE,
        }
    }

    /// The attribute's text. The gateway is the subscriber, which the unspecified address stands for. A metric must be there, and is 1 if
    /// none was said.
    pub(crate) fn text(&self) -> String {
        let gateway = match self.net {
            IpNet::V4(_) => "0.0.0.0",
            IpNet::V6(_) => "::",
        };
        format!("{} {gateway} {}", self.net, self.metric.unwrap_or(1))
    }

    /// Reads the words of a text that follow the network: a gateway, which has no effect because there is only one way to the peer, and
    /// metrics, of which the first one counts. Returns whether there is no sense in the metric, too; the route then has none.
    pub(crate) fn of<'a>(net: IpNet, words: impl Iterator<Item = &'a str>) -> (Self, bool) {
        let mut words = words.peekable();
        words.next_if(|word| word.parse::<IpAddr>().is_ok());
        let metric = words.next().map(|metric| metric.parse().ok());
        let is_odd = metric == Some(None);
        let metric = metric.flatten();
        (FramedRoute { net, metric }, is_odd)
    }
}

impl From<IpNet> for FramedRoute {
    fn from(net: IpNet) -> Self {
        FramedRoute { net, metric: None }
    }
}

/// For people: the network, and the metric if one was said.
impl fmt::Display for FramedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.net.fmt(f)?;
        match self.metric {
            Some(metric) => write!(f, " metric {metric}"),
            None => Ok(()),
        }
    }
}

/// A text is no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a route: a network, a gateway and a metric")]
pub struct NoRoute;

/// Reads the text of Framed-Route or Framed-IPv6-Route.
impl FromStr for FramedRoute {
    type Err = NoRoute;

    fn from_str(text: &str) -> Result<Self, NoRoute> {
        let read = match text.contains(':') {
            true => ipv6(text),
            false => ipv4(text),
        };
        match read {
            Some((route, false)) => Ok(route),
            _ => Err(NoRoute),
        }
    }
}

/// Reads the text of a Framed-Route, and whether its metric makes no sense.
pub(crate) fn ipv4(text: &str) -> Option<(FramedRoute, bool)> {
    let mut words = text.split_whitespace();
    let net = ipv4_net(words.next()?)?;
    Some(FramedRoute::of(net.into(), words))
}

/// Reads the text of a Framed-IPv6-Route, and whether its metric makes no sense.
pub(crate) fn ipv6(text: &str) -> Option<(FramedRoute, bool)> {
    let mut words = text.split_whitespace();
    let net = ipv6_net(words.next()?)?;
    Some(FramedRoute::of(net.into(), words))
}

/// Network of an IPv4 route. Without a length it has that of its class (RFC 2865 §5.22). 0.0.0.0/0 cannot be a subscriber's
/// route.
pub(crate) fn ipv4_net(net: &str) -> Option<Ipv4Net> {
    let net = match net.contains('/') {
        true => net.parse().ok()?,
        false => {
            let address: Ipv4Addr = net.parse().ok()?;
            let length = match address.octets()[0] {
                0..128 => 8,
                128..192 => 16,
                192..224 => 24,
                224.. => return None,
            };
            Ipv4Net::new(address, length).ok()?
        }
    };
    (net.prefix_len() > 0).then_some(net.trunc())
}

/// Network of an IPv6 route. ::/0 cannot be a subscriber's route.
pub(crate) fn ipv6_net(net: &str) -> Option<Ipv6Net> {
    let net = net.parse::<Ipv6Net>().ok()?;
    (net.prefix_len() > 0).then(|| net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_metric_counts_with_and_without_a_gateway() {
        let read = |text| ipv4(text).map(|(route, is_odd)| (route.metric, is_odd));
        for (text, read_as) in [
            ("192.0.2.0/29", Some((None, false))),
            ("192.0.2.0/29 0.0.0.0", Some((None, false))),
            ("192.0.2.0/29 192.0.2.1 7", Some((Some(7), false))),
            ("192.0.2.0/29 192.0.2.1 7 8 nine", Some((Some(7), false))),
            ("192.0.2.0/29 0", Some((Some(0), false))),
            (
                "192.0.2.0/29  0.0.0.0  4294967295",
                Some((Some(u32::MAX), false)),
            ),
            ("192.0.2.0/29 0.0.0.0 4294967296", Some((None, true))),
            ("192.0.2.0/29 0.0.0.0 -1", Some((None, true))),
            ("192.0.2.0/29 home", Some((None, true))),
            ("home 0.0.0.0 1", None),
            ("", None),
        ] {
            assert_eq!(read(text), read_as, "{text}");
        }
        let route: FramedRoute = "2001:db8:77::/48 :: 5".parse().unwrap();
        assert_eq!(
            (route.metric, route.text()),
            (Some(5), "2001:db8:77::/48 :: 5".into())
        );
        assert_eq!(route.to_string(), "2001:db8:77::/48 metric 5");
        assert_eq!("2001:db8:77::/48 :: x".parse::<FramedRoute>(), Err(NoRoute));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC*", net in "(192\\.0\\.2\\.0/2[0-9]|2001:db8::/48) [0-9. :a]*") {
            for text in [&text, &net] {
                ipv4(text);
                if let Ok(route) = text.parse::<FramedRoute>() {
                    let again: FramedRoute = route.text().parse().unwrap();
                    prop_assert_eq!(again.net, route.net);
                    prop_assert_eq!(again.metric, Some(route.metric.unwrap_or(1)));
                }
            }
        }
    }
}
