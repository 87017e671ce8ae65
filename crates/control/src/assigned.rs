//! What AAA assigns to a subscriber of each kind of addresses.

use crate::addresses::Kind;
use aaa::AccessAccept;
use core::net::IpAddr;
use ipnet::IpNet;

/// What AAA says of one kind.
pub(crate) struct Assigned<'a> {
    /// The addresses or prefixes themselves. They come before a pool.
    pub fixed: Vec<IpNet>,
    /// Name of the pool.
    pub pool: Option<&'a String>,
}

impl<'a> Assigned<'a> {
    /// What an answer says of a kind.
    pub fn of(accept: &'a AccessAccept, kind: Kind) -> Self {
        let host = |address: IpAddr| IpNet::from(address);
        let (fixed, pool) = match kind {
            Kind::Ipv4Address => {
                let fixed = accept.framed_ip.map(|address| host(address.into()));
                (fixed.into_iter().collect(), &accept.framed_pool)
            }
            Kind::Link => {
                let fixed = accept.framed_ipv6_prefixes.iter();
                (
                    fixed.copied().map(IpNet::from).collect(),
                    &accept.framed_ipv6_pool,
                )
            }
            Kind::Delegated => {
                let fixed = accept.delegated_prefixes.iter();
                (
                    fixed.copied().map(IpNet::from).collect(),
                    &accept.delegated_pool,
                )
            }
            Kind::Ipv6Address => {
                let fixed = accept.framed_ipv6_address;
                let fixed = fixed.map(|address| host(address.into()));
                (fixed.into_iter().collect(), &accept.ipv6_address_pool)
            }
        };
        let pool = pool.as_ref();
        Assigned { fixed, pool }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.fixed.is_empty() && self.pool.is_none()
    }
}
