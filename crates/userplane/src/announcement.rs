//! Subscriber prefixes as the kernel has them: what routing daemons see.

use std::fmt;

use ipnet::IpNet;

/// Metric of an IPv6 route for which none is said (`IP6_RT_PRIO_USER`). The kernel takes 0 for the same.
const IPV6_DEFAULT: u32 = 1024;

/// Subscriber prefix that is announced, with the metric of its kernel route. The kernel has a route for each metric, so another metric is
/// another announcement: the new one comes before the old one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Announcement {
    /// The prefix.
    pub net: IpNet,
    /// The route's metric, as the kernel shows it.
    pub metric: u32,
}

impl Announcement {
    /// A prefix with the metric that its subscriber's policy says, or the kernel's default.
    pub fn new(net: IpNet, metric: Option<u32>) -> Self {
        let metric = match (net, metric) {
            (IpNet::V6(_), None | Some(0)) => IPV6_DEFAULT,
            (_, metric) => metric.unwrap_or(0),
        };
        Announcement { net, metric }
    }
}

impl From<IpNet> for Announcement {
    fn from(net: IpNet) -> Self {
        Announcement::new(net, None)
    }
}

/// The prefix, and its metric where that is not the default.
impl fmt::Display for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.net.fmt(f)?;
        match *self == Announcement::from(self.net) {
            true => Ok(()),
            false => write!(f, " metric {}", self.metric),
        }
    }
}
