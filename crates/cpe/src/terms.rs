//! What a home asks for and accepts in LCP, IPCP and IPV6CP.

use crate::negotiate::{Judgement, Terms};
use core::net::Ipv4Addr;
use wire::{ipcp, ipv6cp, lcp, ppp};

/// How a home proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// As the gateway asks.
    Any,
    /// PAP alone; anything else is answered with Configure-Nak.
    Pap,
    /// CHAP with MD5 alone.
    Chap,
    /// MS-CHAPv2 alone.
    MsChapV2,
}

/// The protocol that the gateway has asked for and we have accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    Pap,
    Chap,
    MsChapV2,
}

impl Auth {
    fn accepts(self, offered: lcp::Auth) -> Option<Proof> {
        match (offered, self) {
            (lcp::Auth::Pap, Auth::Any | Auth::Pap) => Some(Proof::Pap),
            (lcp::Auth::ChapMd5, Auth::Any | Auth::Chap) => Some(Proof::Chap),
            (lcp::Auth::MsChapV2, Auth::Any | Auth::MsChapV2) => Some(Proof::MsChapV2),
            _ => None,
        }
    }

    const fn preferred(self) -> lcp::Auth<'static> {
        match self {
            Auth::Pap => lcp::Auth::Pap,
            Auth::Any | Auth::Chap => lcp::Auth::ChapMd5,
            Auth::MsChapV2 => lcp::Auth::MsChapV2,
        }
    }
}

/// What both sides say of the link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) auth: Auth,
    /// Our MRU; `None` once the peer has refused to hear of it.
    pub(crate) mru: Option<u16>,
    /// Our magic number; `None` likewise.
    pub(crate) magic: Option<u32>,
    /// The next magic number to try, should the peer have chosen ours.
    pub(crate) spare_magic: u32,
    /// The largest frame that the peer takes.
    pub(crate) peer_mru: u16,
    pub(crate) proof: Option<Proof>,
}

/// Without an MRU option a peer takes 1500 octets (RFC 1661 §6.1); PPPoE leaves room for 1492 (RFC 2516 §7).
const PPPOE_MRU: u16 = 1492;
/// The least IPv6 asks of a link (RFC 8200 §5).
const LEAST_MRU: u16 = 1280;

impl Terms for Link {
    const PROTOCOL: u16 = ppp::LCP;

    fn request(&self, out: &mut Vec<u8>) {
        if let Some(mru) = self.mru {
            lcp::Opt::Mru(mru).emit(out);
        }
        if let Some(magic) = self.magic {
            lcp::Opt::Magic(magic).emit(out);
        }
    }

    fn judge(&mut self, options: &[u8]) -> Option<Judgement> {
        let (mut peer_mru, mut proof) = (PPPOE_MRU, None);
        let (mut better, mut unwanted) = (Vec::new(), Vec::new());
        for option in lcp::Opt::parse_all(options).ok()? {
            match option {
                lcp::Opt::Mru(mru) if mru < LEAST_MRU => lcp::Opt::Mru(PPPOE_MRU).emit(&mut better),
                lcp::Opt::Mru(mru) => peer_mru = mru.min(PPPOE_MRU),
                lcp::Opt::Auth(offered) => match self.auth.accepts(offered) {
                    None => lcp::Opt::Auth(self.auth.preferred()).emit(&mut better),
                    accepted => proof = accepted,
                },
                // Our own number comes back: a looped line, or chance. A Nak with another tells (RFC 1661 §6.4).
                lcp::Opt::Magic(0) => lcp::Opt::Magic(self.spare_magic).emit(&mut better),
                lcp::Opt::Magic(magic) if Some(magic) == self.magic => {
                    lcp::Opt::Magic(self.spare_magic).emit(&mut better);
                }
                lcp::Opt::Magic(_) => {}
                // Field compression saves nothing on Ethernet and is not for PPPoE (RFC 2516 §7).
                lcp::Opt::Unknown(_) => option.emit(&mut unwanted),
            }
        }
        if !unwanted.is_empty() {
            return Some(Judgement::Refuse(unwanted));
        }
        if !better.is_empty() {
            return Some(Judgement::Suggest(better));
        }
        (self.peer_mru, self.proof) = (peer_mru, proof);
        Some(Judgement::Accept)
    }

    fn naked(&mut self, options: &[u8]) -> bool {
        for option in lcp::Opt::parse_all(options).unwrap_or_default() {
            match option {
                lcp::Opt::Mru(mru) => self.mru = Some(mru.min(PPPOE_MRU)),
                lcp::Opt::Magic(_) => self.magic = Some(self.spare_magic),
                _ => {}
            }
        }
        true
    }

    fn rejected(&mut self, options: &[u8]) -> bool {
        for option in lcp::Opt::parse_all(options).unwrap_or_default() {
            match option {
                lcp::Opt::Mru(_) => self.mru = None,
                lcp::Opt::Magic(_) => self.magic = None,
                _ => {}
            }
        }
        true
    }
}

/// What IPCP gives us.
#[derive(Debug)]
pub(crate) struct Ipv4 {
    /// 0.0.0.0 asks for one.
    pub(crate) address: Ipv4Addr,
    /// `None` once the peer has refused to tell.
    pub(crate) dns: [Option<Ipv4Addr>; 2],
    pub(crate) gateway: Option<Ipv4Addr>,
}

impl Default for Ipv4 {
    fn default() -> Self {
        Ipv4 {
            address: Ipv4Addr::UNSPECIFIED,
            dns: [Some(Ipv4Addr::UNSPECIFIED); 2],
            gateway: None,
        }
    }
}

impl Terms for Ipv4 {
    const PROTOCOL: u16 = ppp::IPCP;

    fn request(&self, out: &mut Vec<u8>) {
        ipcp::Opt::Address(self.address).emit(out);
        let dns = [
            self.dns[0].map(ipcp::Opt::PrimaryDns),
            self.dns[1].map(ipcp::Opt::SecondaryDns),
        ];
        dns.iter().flatten().for_each(|option| option.emit(out));
    }

    fn judge(&mut self, options: &[u8]) -> Option<Judgement> {
        let (mut gateway, mut unwanted) = (None, Vec::new());
        for option in ipcp::Opt::parse_all(options).ok()? {
            match option {
                ipcp::Opt::Address(address) if !address.is_unspecified() => gateway = Some(address),
                // We have no addresses to give and compress no headers.
                _ => option.emit(&mut unwanted),
            }
        }
        if !unwanted.is_empty() {
            return Some(Judgement::Refuse(unwanted));
        }
        self.gateway = gateway;
        Some(Judgement::Accept)
    }

    fn naked(&mut self, options: &[u8]) -> bool {
        for option in ipcp::Opt::parse_all(options).unwrap_or_default() {
            match option {
                ipcp::Opt::Address(address) => self.address = address,
                ipcp::Opt::PrimaryDns(server) => self.dns[0] = Some(server),
                ipcp::Opt::SecondaryDns(server) => self.dns[1] = Some(server),
                _ => {}
            }
        }
        !self.address.is_unspecified()
    }

    fn rejected(&mut self, options: &[u8]) -> bool {
        let mut bearable = true;
        for option in ipcp::Opt::parse_all(options).unwrap_or_default() {
            match option {
                ipcp::Opt::Address(_) => bearable = false,
                ipcp::Opt::PrimaryDns(_) => self.dns[0] = None,
                ipcp::Opt::SecondaryDns(_) => self.dns[1] = None,
                _ => {}
            }
        }
        bearable
    }
}

/// What IPV6CP agrees on: the halves of the two link-local addresses.
#[derive(Debug)]
pub(crate) struct Ipv6 {
    pub(crate) interface_id: u64,
    /// The next one to try, should the peer have chosen ours.
    pub(crate) spare: u64,
    pub(crate) peer: Option<u64>,
}

impl Terms for Ipv6 {
    const PROTOCOL: u16 = ppp::IPV6CP;

    fn request(&self, out: &mut Vec<u8>) {
        ipv6cp::Opt::InterfaceId(self.interface_id).emit(out);
    }

    fn judge(&mut self, options: &[u8]) -> Option<Judgement> {
        let (mut peer, mut better, mut unwanted) = (None, Vec::new(), Vec::new());
        for option in ipv6cp::Opt::parse_all(options).ok()? {
            match option {
                ipv6cp::Opt::InterfaceId(id) if id == 0 || id == self.interface_id => {
                    ipv6cp::Opt::InterfaceId(self.spare).emit(&mut better);
                }
                ipv6cp::Opt::InterfaceId(id) => peer = Some(id),
                ipv6cp::Opt::Unknown(_) => option.emit(&mut unwanted),
            }
        }
        if !unwanted.is_empty() {
            return Some(Judgement::Refuse(unwanted));
        }
        if !better.is_empty() {
            return Some(Judgement::Suggest(better));
        }
        self.peer = peer;
        Some(Judgement::Accept)
    }

    fn naked(&mut self, options: &[u8]) -> bool {
        for option in ipv6cp::Opt::parse_all(options).unwrap_or_default() {
            if let ipv6cp::Opt::InterfaceId(id) = option {
                self.interface_id = id;
            }
        }
        self.interface_id != 0
    }

    fn rejected(&mut self, _options: &[u8]) -> bool {
        false
    }
}
