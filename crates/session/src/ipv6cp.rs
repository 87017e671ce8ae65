//! IPV6CP option: the interface identifiers of both ends (RFC 5072 §4.1).
use crate::layer::{Protocol, Refusal, Verdict};
use crate::time::Rng;
use crate::types::{Discarded, SessionConfig};
use core::num::NonZeroU64;
use wire::ipv6cp::Opt;
use wire::ppp::{self, RawOption};

pub(crate) struct Ipv6cp {
    pub(crate) ours: u64,
    pub(crate) peer: u64,
    /// Identifier that the peer must use; `None` if it may choose.
    required: Option<NonZeroU64>,
}

impl Ipv6cp {
    pub(crate) fn new(ours: u64, required: Option<u64>) -> Self {
        Ipv6cp {
            ours,
            peer: 0,
            required: required.and_then(NonZeroU64::new),
        }
    }

    pub(crate) fn restored(ours: u64, peer: u64, required: Option<u64>) -> Self {
        Ipv6cp {
            ours,
            peer,
            required: required.and_then(NonZeroU64::new),
        }
    }

    fn suggestion(&self, rng: &mut Rng) -> u64 {
        let required = self.required.map(NonZeroU64::get);
        let mut id = required.unwrap_or_else(|| rng.nonzero_u64());
        while id == self.ours {
            id = rng.nonzero_u64();
        }
        id
    }

    fn is_fine(&self, id: u64) -> bool {
        id != 0
            && id != self.ours
            && self
                .required
                .is_none_or(|required| [id, self.ours].contains(&required.get()))
    }
}

impl Protocol for Ipv6cp {
    const NUMBER: u16 = ppp::IPV6CP;
    const TIMER: usize = 2;

    fn request(&self, out: &mut Vec<u8>) {
        Opt::InterfaceId(self.ours).emit(out);
    }

    fn judge(
        &mut self,
        options: &[u8],
        may_nak: bool,
        rng: &mut Rng,
    ) -> Result<Verdict, Discarded> {
        let (mut nak, mut reject) = (Vec::new(), Vec::new());
        let mut peer = None;
        for raw in RawOption::iter(options) {
            let raw = raw?;
            match Opt::from(raw) {
                Opt::InterfaceId(id) if self.is_fine(id) => peer = Some(id),
                Opt::InterfaceId(_) if may_nak => {
                    peer = Some(0);
                    Opt::InterfaceId(self.suggestion(rng)).emit(&mut nak);
                }
                _ => raw.emit(&mut reject),
            }
        }
        if !reject.is_empty() {
            return Ok(Verdict::Reject(reject));
        }
        if peer.is_none() && may_nak {
            Opt::InterfaceId(self.suggestion(rng)).emit(&mut nak);
        }
        if !nak.is_empty() {
            return Ok(Verdict::Nak(nak));
        }
        self.peer = peer.unwrap_or(0);
        Ok(Verdict::Ack)
    }

    /// The peer already uses our identifier. Its proposal is as good as any other.
    fn naked(&mut self, options: &[u8], _: &SessionConfig, rng: &mut Rng) -> Result<(), Refusal> {
        for option in Opt::parse_all(options)? {
            if let Opt::InterfaceId(id) = option {
                self.ours = if id != 0 && id != self.peer {
                    id
                } else {
                    rng.nonzero_u64()
                };
            }
        }
        Ok(())
    }

    /// Without the option we have no link-local address. We ask again until the limit is reached.
    fn rejected(&mut self, options: &[u8]) -> Result<(), Refusal> {
        Opt::parse_all(options)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(ipv6cp: &mut Ipv6cp, id: Option<u64>) -> Verdict {
        let mut bytes = Vec::new();
        if let Some(id) = id {
            Opt::InterfaceId(id).emit(&mut bytes);
        }
        ipv6cp.judge(&bytes, true, &mut Rng(1)).unwrap()
    }

    fn naked_id(verdict: Verdict) -> u64 {
        let Verdict::Nak(nak) = verdict else {
            panic!("{verdict:?}")
        };
        let Opt::InterfaceId(id) = Opt::parse_all(&nak).unwrap()[0] else {
            panic!()
        };
        id
    }

    #[test]
    fn zero_none_and_ours_get_a_suggestion() {
        let mut i = Ipv6cp::new(42, None);
        for wrong in [Some(0), None, Some(42)] {
            let id = naked_id(judge(&mut i, wrong));
            assert!(id != 0 && id != 42);
        }
        assert_eq!(judge(&mut i, Some(7)), Verdict::Ack);
        assert_eq!(i.peer, 7);
    }

    #[test]
    fn a_required_identifier_is_insisted_on() {
        let mut i = Ipv6cp::new(42, Some(9));
        assert_eq!(naked_id(judge(&mut i, Some(7))), 9);
        assert_eq!(judge(&mut i, Some(9)), Verdict::Ack);
    }

    #[test]
    fn we_take_the_peers_proposal() {
        let mut i = Ipv6cp::new(42, None);
        let mut nak = Vec::new();
        Opt::InterfaceId(77).emit(&mut nak);
        assert!(
            i.naked(&nak, &SessionConfig::default(), &mut Rng(1))
                .is_ok()
        );
        assert_eq!(i.ours, 77);
    }
}
