//! IPCP options: the peer's address and DNS servers (RFC 1332, RFC 1877).
use crate::layer::{Protocol, Refusal, Verdict};
use crate::time::Rng;
use crate::types::{Discarded, Ipv4Grant, SessionConfig};
use core::net::Ipv4Addr;
use wire::ipcp::Opt;
use wire::ppp::{self, RawOption};

pub(crate) struct Ipcp {
    pub(crate) grant: Ipv4Grant,
    ask_address: bool,
}

impl Ipcp {
    pub(crate) fn new(grant: Ipv4Grant) -> Self {
        Ipcp {
            grant,
            ask_address: true,
        }
    }
}

/// Used before there is a grant.
pub(crate) const NO_GRANT: Ipv4Grant = Ipv4Grant {
    address: Ipv4Addr::UNSPECIFIED,
    gateway: Ipv4Addr::UNSPECIFIED,
    dns: [None; 2],
};

impl Protocol for Ipcp {
    const NUMBER: u16 = ppp::IPCP;
    const TIMER: usize = 1;

    fn request(&self, out: &mut Vec<u8>) {
        if self.ask_address {
            Opt::Address(self.grant.gateway).emit(out);
        }
    }

    /// Accepts exactly what was granted to the peer. 0.0.0.0 and any other value get a Nak with the granted value. DNS servers
    /// that we do not have, NetBIOS and compression are rejected.
    fn judge(&mut self, options: &[u8], may_nak: bool, _: &mut Rng) -> Result<Verdict, Discarded> {
        let (mut nak, mut reject) = (Vec::new(), Vec::new());
        let mut has_address = false;
        for raw in RawOption::iter(options) {
            let raw = raw?;
            let (wanted, corrected) = match Opt::from(raw) {
                Opt::Address(a) => {
                    has_address = true;
                    (a, Some(Opt::Address(self.grant.address)))
                }
                Opt::PrimaryDns(a) => (a, self.grant.dns[0].map(Opt::PrimaryDns)),
                Opt::SecondaryDns(a) => (a, self.grant.dns[1].map(Opt::SecondaryDns)),
                _ => (Ipv4Addr::UNSPECIFIED, None),
            };
            match corrected {
                Some(Opt::Address(a) | Opt::PrimaryDns(a) | Opt::SecondaryDns(a))
                    if a == wanted => {}
                Some(option) if may_nak => option.emit(&mut nak),
                _ => raw.emit(&mut reject),
            }
        }
        if !reject.is_empty() {
            return Ok(Verdict::Reject(reject));
        }
        // A peer that does not request an address is asked to do so (RFC 1661 §5.3).
        if !has_address && may_nak {
            Opt::Address(self.grant.address).emit(&mut nak);
        }
        Ok(if nak.is_empty() {
            Verdict::Ack
        } else {
            Verdict::Nak(nak)
        })
    }

    /// Our address is not negotiable.
    fn naked(&mut self, options: &[u8], _: &SessionConfig, _: &mut Rng) -> Result<(), Refusal> {
        Opt::parse_all(options)?;
        Ok(())
    }

    fn rejected(&mut self, options: &[u8]) -> Result<(), Refusal> {
        if Opt::parse_all(options)?
            .iter()
            .any(|o| matches!(o, Opt::Address(_)))
        {
            self.ask_address = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 7);
    const DNS: Ipv4Addr = Ipv4Addr::new(9, 9, 9, 9);
    const ZERO: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

    fn bytes(options: &[Opt<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.iter().for_each(|o| o.emit(&mut bytes));
        bytes
    }

    fn judge(options: &[Opt<'_>], may_nak: bool) -> Verdict {
        let grant = Ipv4Grant {
            address: A,
            gateway: Ipv4Addr::new(100, 64, 0, 1),
            dns: [Some(DNS), None],
        };
        Ipcp::new(grant)
            .judge(&bytes(options), may_nak, &mut Rng(1))
            .unwrap()
    }

    #[test]
    fn zeros_are_answered_with_the_grant() {
        let asked = [Opt::Address(ZERO), Opt::PrimaryDns(ZERO)];
        assert_eq!(
            judge(&asked, true),
            Verdict::Nak(bytes(&[Opt::Address(A), Opt::PrimaryDns(DNS)]))
        );
        assert_eq!(
            judge(&[Opt::Address(A), Opt::PrimaryDns(DNS)], true),
            Verdict::Ack
        );
    }

    #[test]
    fn what_we_do_not_have_is_rejected_first() {
        let odd = [
            Opt::SecondaryDns(ZERO),
            Opt::PrimaryNbns(ZERO),
            Opt::Unknown(RawOption {
                kind: 2,
                data: &[0, 0x2d, 15, 1],
            }),
        ];
        let all = [&[Opt::Address(ZERO)], &odd[..]].concat();
        assert_eq!(judge(&all, true), Verdict::Reject(bytes(&odd)));
    }

    #[test]
    fn a_missing_address_is_asked_for_until_patience_ends() {
        assert_eq!(judge(&[], true), Verdict::Nak(bytes(&[Opt::Address(A)])));
        assert_eq!(judge(&[], false), Verdict::Ack);
    }

    #[test]
    fn insisting_ends_in_a_reject() {
        let own = [Opt::Address(Ipv4Addr::new(10, 0, 0, 1))];
        assert_eq!(judge(&own, true), Verdict::Nak(bytes(&[Opt::Address(A)])));
        assert_eq!(judge(&own, false), Verdict::Reject(bytes(&own)));
    }
}
