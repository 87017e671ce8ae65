//! Addresses and ids that the control plane's sessions hold. Each step checks only the sessions that changed.

use crate::access_network::{FIXED, Line};
use crate::takeovers::Takeovers;
use crate::world::{fixed_address, fixed_prefix};
use control::ControlPlane;
use control::plane::{Held, HeldStage};
use control::topology::Seid;
use core::time::Duration;
use ipnet::{IpNet, Ipv6Net};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of a subscriber's IPv6 prefix.
const PREFIX: u8 = 64;
/// Length of its delegated prefix.
const DELEGATED: u8 = 56;

/// Session as it was at the last step.
#[derive(Clone, Copy)]
struct Seen {
    seid: Seid,
    line: Option<Line>,
    /// Home of the line with a fixed address, if this is its first household.
    fixed: Option<usize>,
    pppoe_id: u16,
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Net>,
    /// What the router gets by DHCPv6.
    router: Option<Ipv6Addr>,
    delegated: Option<Ipv6Net>,
    stage: HeldStage,
}

impl Seen {
    fn of(held: &Held<'_>) -> Self {
        let line = Line::of_circuit(held.user_plane.0.into(), held.circuit);
        let home = line
            .and_then(Line::home)
            .filter(|home| FIXED.contains(home));
        Seen {
            seid: held.seid,
            line,
            fixed: home.filter(|_| crate::access_network::is_first(held.circuit)),
            pppoe_id: held.pppoe_id,
            ipv4: held.ipv4,
            ipv6: held.ipv6,
            router: held.bindings.ipv6_address(),
            delegated: held.bindings.delegated().next(),
            stage: held.stage,
        }
    }

    /// Line and PPPoE session id stay the same as long as the name does.
    fn is(&self, held: &Held<'_>) -> bool {
        let by_dhcp = (
            held.bindings.ipv6_address(),
            held.bindings.delegated().next(),
        );
        (self.seid, self.ipv4, self.ipv6, self.stage)
            == (held.seid, held.ipv4, held.ipv6, held.stage)
            && (self.router, self.delegated) == by_dhcp
    }

    /// Everything that is the session's alone.
    fn nets(&self) -> impl Iterator<Item = IpNet> + use<> {
        let router = self.router.map(|a| IpNet::from(IpAddr::from(a)));
        let by_dhcp = router.into_iter().chain(self.delegated.map(IpNet::from));
        addresses(self.ipv4, self.ipv6).chain(by_dhcp)
    }

    /// Whoever is online with IPv6 has all that DHCPv6 tells: the pools of that have room for everybody.
    fn check_delegated(&self) -> Result<(), String> {
        let is_open = self.stage == HeldStage::Online && self.ipv6.is_some();
        match (self.router, self.delegated) {
            (Some(_), Some(prefix)) if prefix.prefix_len() == DELEGATED => Ok(()),
            _ if !is_open => Ok(()),
            (router, delegated) => Err(format!(
                "{} is online with {router:?} and {delegated:?} for DHCPv6",
                self.seid
            )),
        }
    }
}

/// Holdings of all sessions.
#[derive(Default)]
pub struct Holdings {
    /// By the session's index.
    seen: Vec<Option<Seen>>,
    owners: HashMap<IpNet, Seen>,
    /// By line and PPPoE session id.
    links: HashMap<(Line, u16), Seid>,
    /// Fixed addresses that changed hands.
    pub takeovers: Takeovers,
}

/// An address and a prefix, as nets.
pub fn addresses(ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Net>) -> impl Iterator<Item = IpNet> {
    let ipv4 = ipv4.map(|a| IpNet::from(IpAddr::from(a)));
    ipv4.into_iter().chain(ipv6.map(IpNet::from))
}

impl Holdings {
    /// Whether the control plane knows a session of this line with this PPPoE session id.
    pub fn knows(&self, line: Line, pppoe_id: u16) -> bool {
        self.links.contains_key(&(line, pppoe_id))
    }

    /// The session of this line with this PPPoE session id.
    pub fn session(&self, line: Line, pppoe_id: u16) -> Option<Seid> {
        self.links.get(&(line, pppoe_id)).copied()
    }

    /// The line of the session that has an address: `None` if no session has it.
    pub fn owner(&self, address: IpAddr) -> Option<Option<Line>> {
        let length = if address.is_ipv4() { 32 } else { PREFIX };
        let net = IpNet::new(address, length).ok()?.trunc();
        self.owners.get(&net).map(|seen| seen.line)
    }

    /// Looks at what changed.
    ///
    /// # Errors
    /// An address was given to a second session, or a session is online without its fixed one.
    pub fn look(&mut self, now: Duration, control: &ControlPlane) -> Result<(), String> {
        let (mut gone, mut came) = (Vec::new(), Vec::new());
        let mut next = 0;
        for held in control.held() {
            let index = held.seid.index() as usize;
            if self.seen.len() <= index {
                self.seen.resize(index + 1, None);
            }
            gone.extend(self.seen[next..index].iter_mut().filter_map(Option::take));
            next = index + 1;
            if !self.seen[index].is_some_and(|seen| seen.is(&held)) {
                let seen = Seen::of(&held);
                gone.extend(self.seen[index].replace(seen));
                came.push(seen);
            }
        }
        gone.extend(self.seen[next..].iter_mut().filter_map(Option::take));
        gone.iter().for_each(|seen| self.strike(seen));
        came.iter().try_for_each(|seen| self.enter(seen))?;
        came.iter().try_for_each(Seen::check_delegated)?;
        came.iter().try_for_each(|seen| self.check_fixed(now, seen))
    }

    /// A session of a home with a fixed address takes it over, and is not online without it.
    fn check_fixed(&mut self, now: Duration, seen: &Seen) -> Result<(), String> {
        let Some(home) = seen.fixed else {
            return Ok(());
        };
        let (address, prefix) = (fixed_address(home), fixed_prefix(home));
        let own = addresses(address, None);
        let mut owners = own.filter_map(|net| self.owners.get(&net));
        let giver = owners.find(|owner| owner.seid != seen.seid);
        if let (HeldStage::HalfOpen, Some(giver)) = (seen.stage, giver) {
            self.takeovers.begin(home, giver.seid, seen.seid);
        }
        if seen.ipv4 == address {
            self.takeovers.has(now, home, seen.seid);
        }
        if seen.stage == HeldStage::Online {
            if seen.ipv4 != address || prefix.is_some() && seen.ipv6 != prefix {
                let (seid, ipv4, ipv6) = (seen.seid, seen.ipv4, seen.ipv6);
                return Err(format!(
                    "{seid} of home{home} is online with {ipv4:?} and {ipv6:?}"
                ));
            }
            self.takeovers.end(home, seen.seid);
        }
        Ok(())
    }

    fn strike(&mut self, seen: &Seen) {
        for address in seen.nets() {
            self.owners.remove(&address);
        }
        if let Some(line) = seen.line {
            self.links.remove(&(line, seen.pppoe_id));
        }
    }

    fn enter(&mut self, seen: &Seen) -> Result<(), String> {
        for address in seen.nets() {
            if let Some(other) = self.owners.insert(address, *seen) {
                let (one, other) = (seen.seid, other.seid);
                return Err(format!("{address} was given twice: to {other} and {one}"));
            }
        }
        if let Some(line) = seen.line {
            self.links.insert((line, seen.pppoe_id), seen.seid);
        }
        Ok(())
    }
}
