//! LCP options: MRU, authentication protocol, magic number (RFC 1661 §6).
use crate::layer::{Protocol, Refusal, Verdict};
use crate::time::Rng;
use crate::types::{Cause, Discarded, SessionConfig};
use wire::lcp::{Auth, Opt};
use wire::ppp::{self, RawOption};

/// Smallest MRU that we accept from a peer. No IP host could work below it.
const MIN_MRU: u16 = 128;
/// Largest PPP payload in a 1500-octet Ethernet frame (RFC 2516 §7).
pub(crate) const PPPOE_MRU: u16 = 1492;

/// Supported authentication protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProtocol {
    /// PAP.
    Pap,
    /// CHAP with MD5.
    Chap,
    /// MS-CHAPv2.
    MsChapV2,
}

impl AuthProtocol {
    fn option(self) -> Auth<'static> {
        match self {
            AuthProtocol::Pap => Auth::Pap,
            AuthProtocol::Chap => Auth::ChapMd5,
            AuthProtocol::MsChapV2 => Auth::MsChapV2,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Options that both sides have agreed on, or are negotiating.
pub(crate) struct Lcp {
    /// Our magic number; 0 once the peer has rejected the option.
    pub(crate) magic: u32,
    pub(crate) peer_magic: u32,
    /// Our MRU, and whether we request it.
    pub(crate) mru: u16,
    ask_mru: bool,
    pub(crate) peer_mru: u16,
    /// Upper limit of both MRUs.
    pub(crate) limit: u16,
    pub(crate) auth: AuthProtocol,
    /// Authentication protocols that the peer has refused, a bit each.
    refused: u8,
}

impl Lcp {
    /// `max_payload`: the value that both sides gave with PPP-Max-Payload. Only that raises the limit (RFC 4638).
    pub(crate) fn new(config: &SessionConfig, max_payload: Option<u16>, magic: u32) -> Self {
        let limit = max_payload.unwrap_or(0).max(PPPOE_MRU);
        Lcp {
            magic,
            peer_magic: 0,
            mru: if limit > PPPOE_MRU {
                limit
            } else {
                config.mru.clamp(MIN_MRU, PPPOE_MRU)
            },
            ask_mru: true,
            peer_mru: PPPOE_MRU,
            limit,
            auth: *config.auth.first().expect("one protocol is asked for"),
            refused: 0,
        }
    }

    /// Takes the protocol that the peer proposes instead of the one that it refuses. If its proposal is none that may be used, it may
    /// still accept the next one of ours.
    fn refuse_auth(&mut self, proposed: Auth<'_>, config: &SessionConfig) -> Result<(), Refusal> {
        self.refused |= self.auth.bit();
        let is_left = |auth: &&AuthProtocol| self.refused & auth.bit() == 0;
        let left = || config.auth.iter().filter(is_left);
        let chosen = left().find(|auth| auth.option() == proposed);
        let chosen = chosen.or_else(|| left().next());
        self.auth = *chosen.ok_or(Refusal::GiveUp(Cause::AuthFailed))?;
        Ok(())
    }
}

impl Protocol for Lcp {
    const NUMBER: u16 = ppp::LCP;
    const TIMER: usize = 0;

    fn request(&self, out: &mut Vec<u8>) {
        if self.ask_mru {
            Opt::Mru(self.mru).emit(out);
        }
        Opt::Auth(self.auth.option()).emit(out);
        if self.magic != 0 {
            Opt::Magic(self.magic).emit(out);
        }
    }

    /// MRU and magic number are negotiated. Everything else is rejected: authentication of the gateway; header compression and
    /// the character map, which RFC 2516 §7 forbids; and options for other kinds of links.
    fn judge(
        &mut self,
        options: &[u8],
        may_nak: bool,
        rng: &mut Rng,
    ) -> Result<Verdict, Discarded> {
        let (mut nak, mut reject) = (Vec::new(), Vec::new());
        let (mut peer_mru, mut peer_magic) = (PPPOE_MRU, 0);
        for raw in RawOption::iter(options) {
            let raw = raw?;
            match Opt::from(raw) {
                Opt::Magic(magic) if magic != 0 && magic == self.magic => {
                    return Ok(suspect_loop(may_nak, rng));
                }
                Opt::Mru(mru) if (MIN_MRU..=self.limit).contains(&mru) => peer_mru = mru,
                Opt::Mru(_) if may_nak => Opt::Mru(self.limit).emit(&mut nak),
                Opt::Magic(magic) if magic != 0 => peer_magic = magic,
                // Zero is not a valid magic number (RFC 1661 §6.4).
                Opt::Magic(_) if may_nak => Opt::Magic(rng.nonzero_u32()).emit(&mut nak),
                _ => raw.emit(&mut reject),
            }
        }
        if !reject.is_empty() {
            return Ok(Verdict::Reject(reject));
        }
        if !nak.is_empty() {
            return Ok(Verdict::Nak(nak));
        }
        (self.peer_mru, self.peer_magic) = (peer_mru, peer_magic);
        Ok(Verdict::Ack)
    }

    fn naked(
        &mut self,
        options: &[u8],
        config: &SessionConfig,
        rng: &mut Rng,
    ) -> Result<(), Refusal> {
        for option in Opt::parse_all(options)? {
            match option {
                Opt::Mru(mru) if (MIN_MRU..=self.limit).contains(&mru) => self.mru = mru,
                Opt::Magic(_) if self.magic != 0 => self.magic = rng.nonzero_u32(),
                Opt::Auth(proposed) => self.refuse_auth(proposed, config)?,
                // We do not support options that the peer wants us to add.
                _ => {}
            }
        }
        Ok(())
    }

    fn rejected(&mut self, options: &[u8]) -> Result<(), Refusal> {
        for option in Opt::parse_all(options)? {
            match option {
                Opt::Mru(_) => self.ask_mru = false,
                Opt::Magic(_) => self.magic = 0,
                // A peer that does not authenticate gets no service.
                Opt::Auth(_) => return Err(Refusal::GiveUp(Cause::AuthFailed)),
                Opt::Unknown(_) => {}
            }
        }
        Ok(())
    }
}

/// Answers a request with our own magic number. It is our own packet, or a rare coincidence: only a new number can tell (RFC 1661
/// §6.4). Nothing else in the request matters until then.
fn suspect_loop(may_nak: bool, rng: &mut Rng) -> Verdict {
    if !may_nak {
        return Verdict::GiveUp(Cause::Loopback);
    }
    let mut nak = Vec::new();
    Opt::Magic(rng.nonzero_u32()).emit(&mut nak);
    Verdict::Nak(nak)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(lcp: &mut Lcp, options: &[Opt<'_>], may_nak: bool) -> Verdict {
        let mut bytes = Vec::new();
        options.iter().for_each(|o| o.emit(&mut bytes));
        lcp.judge(&bytes, may_nak, &mut Rng(1)).unwrap()
    }

    fn bytes(options: &[Opt<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.iter().for_each(|o| o.emit(&mut bytes));
        bytes
    }

    fn lcp(max_payload: Option<u16>) -> Lcp {
        Lcp::new(&SessionConfig::default(), max_payload, 0x1111_1111)
    }

    #[test]
    fn mru_above_1492_only_after_max_payload() {
        let mru = |m| bytes(&[Opt::Mru(m)]);
        assert_eq!(
            judge(&mut lcp(None), &[Opt::Mru(1500)], true),
            Verdict::Nak(mru(1492))
        );
        assert_eq!(
            judge(&mut lcp(Some(1500)), &[Opt::Mru(1500)], true),
            Verdict::Ack
        );
        assert_eq!(
            judge(&mut lcp(Some(1500)), &[Opt::Mru(1501)], true),
            Verdict::Nak(mru(1500))
        );
        assert_eq!(lcp(Some(1500)).mru, 1500);
        assert_eq!(
            lcp(Some(1400)).mru,
            1492,
            "a tag that asks for less than 1492 says nothing"
        );
    }

    #[test]
    fn a_small_mru_is_the_peers_right_but_not_a_tiny_one() {
        let mut l = lcp(None);
        assert_eq!(judge(&mut l, &[Opt::Mru(1400)], true), Verdict::Ack);
        assert_eq!(l.peer_mru, 1400);
        assert_eq!(
            judge(&mut l, &[Opt::Mru(60)], true),
            Verdict::Nak(bytes(&[Opt::Mru(1492)]))
        );
        assert_eq!(
            judge(&mut l, &[Opt::Mru(60)], false),
            Verdict::Reject(bytes(&[Opt::Mru(60)]))
        );
    }

    #[test]
    fn what_pppoe_forbids_is_rejected_before_anything_is_naked() {
        let odd = [
            Opt::Unknown(RawOption {
                kind: 2,
                data: &[0; 4],
            }),
            Opt::Auth(Auth::Pap),
            Opt::Unknown(RawOption { kind: 7, data: &[] }),
            Opt::Unknown(RawOption { kind: 8, data: &[] }),
        ];
        let all = [&odd[..], &[Opt::Mru(9000), Opt::Magic(5)]].concat();
        assert_eq!(
            judge(&mut lcp(None), &all, true),
            Verdict::Reject(bytes(&odd))
        );
    }

    #[test]
    fn our_own_magic_is_naked_and_in_the_end_a_loop() {
        let mut l = lcp(None);
        let Verdict::Nak(nak) = judge(&mut l, &[Opt::Magic(0x1111_1111)], true) else {
            panic!()
        };
        let Opt::Magic(other) = Opt::parse_all(&nak).unwrap()[0] else {
            panic!()
        };
        assert!(other != 0 && other != 0x1111_1111);
        assert_eq!(
            judge(&mut l, &[Opt::Magic(0x1111_1111)], false),
            Verdict::GiveUp(Cause::Loopback)
        );
    }

    #[test]
    fn the_second_protocol_is_tried_once() {
        let mut l = lcp(None);
        let nak = bytes(&[Opt::Auth(Auth::Other(0xc227, &[]))]);
        let config = SessionConfig::default();
        assert!(l.naked(&nak, &config, &mut Rng(1)).is_ok());
        assert_eq!(l.auth, AuthProtocol::Pap);
        assert!(matches!(
            l.naked(&nak, &config, &mut Rng(1)),
            Err(Refusal::GiveUp(Cause::AuthFailed))
        ));
        let config = SessionConfig {
            auth: vec![AuthProtocol::Chap],
            ..config
        };
        let mut l = Lcp::new(&config, None, 1);
        assert!(matches!(
            l.naked(&nak, &config, &mut Rng(1)),
            Err(Refusal::GiveUp(Cause::AuthFailed))
        ));
    }

    #[test]
    fn a_nak_chooses_among_the_protocols_that_are_allowed() {
        use AuthProtocol::{Chap, MsChapV2, Pap};
        let naked = |auth: &[AuthProtocol], naks: &[Auth<'_>]| {
            let config = SessionConfig {
                auth: auth.to_vec(),
                ..SessionConfig::default()
            };
            let mut lcp = Lcp::new(&config, None, 1);
            let mut nak = |proposed| {
                let nak = bytes(&[Opt::Auth(proposed)]);
                lcp.naked(&nak, &config, &mut Rng(1)).ok()
            };
            let last = naks.iter().map(|proposed| nak(*proposed)).last();
            last.flatten().map(|()| lcp.auth)
        };
        let all = [Chap, Pap, MsChapV2];
        assert_eq!(naked(&all, &[Auth::MsChapV2]), Some(MsChapV2));
        assert_eq!(naked(&all, &[Auth::Pap]), Some(Pap));
        let eap = Auth::Other(0xc227, &[]);
        assert_eq!(naked(&all, &[eap]), Some(Pap), "the next one");
        // what was refused is not asked for again
        assert_eq!(naked(&all, &[eap, Auth::ChapMd5]), Some(MsChapV2));
        assert_eq!(naked(&all, &[eap, eap, eap]), None);
        assert_eq!(naked(&[MsChapV2], &[Auth::Pap]), None);
        assert_eq!(naked(&[Pap, Chap], &[Auth::MsChapV2]), Some(Chap));
    }
}
