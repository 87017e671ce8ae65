//! Link aggregation: which members of a group frames are sent and received by, as LACP finds out (IEEE 802.1AX-2020 §6.4).
//!
//! **What lives here:** the protocol's state machines, without sockets and clocks of their own: what is heard and the time go in, LACPDUs
//! and two sets of members come out. **Who may call it:** whoever has the links; for ports, `userplane`.
//!
//! Collecting and distributing are independent here (§6.4.13, Figure 6-22), so that nothing is sent to a partner that does not receive yet.
//! A group has one aggregator, and so there is no time of waiting for further members before the first one is attached.
//!
//! ```
//! use core::time::Duration;
//! use lacp::{Group, Mode, Settings};
//! use wire::eth::MacAddr;
//!
//! let settings = Settings { mode: Mode::Active, system: MacAddr([2, 0, 0, 0, 0, 1]), key: 1, ..Settings::default() };
//! let mut group = Group::new(settings, 2);
//! let now = Duration::ZERO;
//! group.set_link(now, 0, true);
//! let (member, pdu) = group.poll_transmit(now).unwrap();
//! assert_eq!((member, pdu.actor.port), (0, 1));
//! assert_eq!(group.sends(), 0, "nobody has answered");
//! ```
#![forbid(unsafe_code)]

mod member;
#[cfg(test)]
mod tests;

use core::num::NonZeroU32;
use core::time::Duration;
use wire::eth::MacAddr;
use wire::lacp::{Lacpdu, Party};

pub use member::Counters;
use member::Member;

/// Whether the protocol is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By itself.
    #[default]
    Active,
    /// If the partner does.
    Passive,
    /// Not at all: whatever link is up is used.
    Off,
}

/// What is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether the protocol is spoken.
    pub mode: Mode,
    /// Whether the partner shall send each second, and is forgotten after 3; else each 30 and after 90.
    pub fast: bool,
    /// Members that have to be usable, or none is used.
    pub minimum: u16,
    /// Priority of this system, the lowest first.
    pub system_priority: u16,
    /// This system.
    pub system: MacAddr,
    /// Which of this system's groups it is.
    pub key: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            mode: Mode::Active,
            fast: true,
            minimum: 1,
            system_priority: 0x8000,
            system: MacAddr::ZERO,
            key: 1,
        }
    }
}

/// Why a member is used, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Frames are sent and received by it.
    Used,
    /// Its link is down.
    LinkDown,
    /// No LACPDU came, or none any more.
    Silent,
    /// The partner is this system itself.
    Looped,
    /// Its link leads to another system or group than those of the others do.
    OtherPartner,
    /// Its link has another speed than those of the others.
    OtherSpeed,
    /// The partner does not agree yet.
    Waiting,
    /// There are fewer usable members than configured.
    TooFew,
}

impl Standing {
    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Used => "used",
            Standing::LinkDown => "link-down",
            Standing::Silent => "silent",
            Standing::Looped => "looped",
            Standing::OtherPartner => "other-partner",
            Standing::OtherSpeed => "other-speed",
            Standing::Waiting => "waiting",
            Standing::TooFew => "too-few",
        }
    }
}

/// Links that may be used together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkGroup {
    /// What tells groups of partners apart: priority, system and key; of a link that is not to be aggregated its port, too (§6.3.5).
    partner: (u16, MacAddr, u16, Option<u16>),
    /// Of the link. Subscribers are spread evenly, so a slow link would be full while a fast one is not. Links whose speed is not known are
    /// taken for equal.
    speed: Option<NonZeroU32>,
}

/// The members of a group. Members are numbered from 0 on; their ports, from 1 on.
#[derive(Clone, Debug)]
pub struct Group {
    settings: Settings,
    members: Vec<Member>,
    /// The links that are used.
    used: Option<LinkGroup>,
}

impl Group {
    /// A group of so many members, 16 at most, whose links are down.
    pub fn new(settings: Settings, members: usize) -> Self {
        Group {
            settings,
            members: vec![Member::default(); members.min(16)],
            used: None,
        }
    }

    /// What is configured.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes the settings. Members that are used stay so, unless the new settings say otherwise.
    pub fn set(&mut self, now: Duration, settings: Settings) {
        if self.settings == settings {
            return;
        }
        self.settings = settings;
        for member in &mut self.members {
            member.changed(now, settings.mode);
        }
        self.select();
    }

    /// Says whether a member's link is up.
    pub fn set_link(&mut self, now: Duration, member: usize, up: bool) {
        if let Some(member) = self.members.get_mut(member)
            && member.set_link(now, up)
        {
            self.select();
        }
    }

    /// Says how fast a member's link is, in Mbit/s; `None` if that is not known.
    pub fn set_speed(&mut self, member: usize, speed: Option<NonZeroU32>) {
        if let Some(member) = self.members.get_mut(member)
            && member.set_speed(speed)
        {
            self.select();
        }
    }

    /// Takes the payload of a frame of the slow protocols that came by a member; what is to be sent back at once by it.
    pub fn receive(&mut self, now: Duration, member: usize, payload: &[u8]) -> Option<Vec<u8>> {
        let own = self.actor(member)?;
        let settings = self.settings;
        let member = &mut self.members[member];
        if settings.mode == Mode::Off || !member.is_up() {
            return None;
        }
        match Lacpdu::parse(payload) {
            Ok(pdu) => member.heard(now, &settings, own, &pdu),
            Err(_) => match wire::lacp::marker_response(payload) {
                None => member.counters.malformed += 1,
                response => return response,
            },
        }
        self.select();
        None
    }

    /// When [`Group::on_timeout`] or [`Group::poll_transmit`] has something to do, if nothing is heard before.
    pub fn poll_at(&self) -> Option<Duration> {
        let members = self.members.iter();
        members
            .filter_map(|member| member.poll_at(&self.settings))
            .min()
    }

    /// Forgets what was heard too long ago.
    pub fn on_timeout(&mut self, now: Duration) {
        for member in &mut self.members {
            member.on_timeout(now);
        }
        self.select();
    }

    /// The next LACPDU that is to be sent, and by which member.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<(usize, Lacpdu)> {
        let settings = self.settings;
        let mut members = self.members.iter_mut();
        let due = members.position(|member| member.is_due(now, &settings))?;
        let pdu = Lacpdu {
            actor: self.actor(due)?,
            partner: self.members[due].partner().unwrap_or_default(),
            max_delay: 0,
        };
        self.members[due].sent(now, &settings);
        Some((due, pdu))
    }

    /// The members from which frames are taken; bit 0 is the first one.
    pub fn receives(&self) -> u16 {
        self.set_of(Member::receives)
    }

    /// The members by which frames are sent.
    pub fn sends(&self) -> u16 {
        self.set_of(Member::sends)
    }

    fn set_of(&self, of: impl Fn(&Member) -> bool) -> u16 {
        let members = self.members.iter().zip(0..);
        members
            .map(|(member, bit)| u16::from(of(member)) << bit)
            .sum()
    }

    /// Each member: how it stands, whom it leads to, and what was counted.
    pub fn members(&self) -> impl Iterator<Item = (Standing, Option<Party>, Counters)> + '_ {
        let members = self.members.iter();
        members.map(|member| (self.standing(member), member.partner(), member.counters))
    }

    /// The speed of each member's link, as it was said.
    pub fn speeds(&self) -> impl Iterator<Item = Option<NonZeroU32>> + '_ {
        self.members.iter().map(Member::speed)
    }

    fn standing(&self, member: &Member) -> Standing {
        let usable = self
            .members
            .iter()
            .filter(|member| member.is_usable())
            .count();
        match member.partner() {
            _ if !member.is_up() => Standing::LinkDown,
            _ if member.sends() && member.receives() => Standing::Used,
            _ if member.is_usable() && usable < self.settings.minimum.into() => Standing::TooFew,
            _ if self.differs_in_speed(member) => Standing::OtherSpeed,
            None => Standing::Silent,
            Some(partner) if partner.system == self.settings.system => Standing::Looped,
            Some(_) if !member.is_selected() => Standing::OtherPartner,
            Some(_) => Standing::Waiting,
        }
    }

    /// Whether a member's link could be used with the others if it had their speed.
    fn differs_in_speed(&self, member: &Member) -> bool {
        let group = member.group(self.settings.mode);
        let both = group.zip(self.used);
        both.is_some_and(|(own, used)| own.partner == used.partner && own.speed != used.speed)
    }

    /// What this system says of a member.
    fn actor(&self, member: usize) -> Option<Party> {
        let Settings {
            system_priority,
            system,
            key,
            ..
        } = self.settings;
        let state = self.members.get(member)?.state(&self.settings);
        Some(Party {
            system_priority,
            system,
            key,
            port_priority: 0x8000,
            port: member as u16 + 1,
            state,
        })
    }

    /// Decides anew which members belong together (§6.4.12) and are used (§6.4.13).
    fn select(&mut self) {
        let Settings {
            mode,
            minimum,
            system,
            ..
        } = self.settings;
        let group = |member: &Member| {
            let group = member.group(mode);
            group.filter(|group| mode == Mode::Off || group.partner.1 != system)
        };
        // The group that is used stays it as long as anybody is in it; of others that with the most members.
        let count = |of: Option<LinkGroup>| {
            let members = self.members.iter();
            members.filter(|member| group(member) == of).count()
        };
        if count(self.used) == 0 || self.used.is_none() {
            let groups = self.members.iter().rev().filter_map(group);
            self.used = groups.max_by_key(|of| count(Some(*of)));
        }
        let used = self.used;
        for member in &mut self.members {
            member.select(used.is_some() && group(member) == used);
        }
        if used.is_some_and(|used| used.partner.3.is_some()) {
            // A link that is not to be aggregated is alone.
            let mut selected = self
                .members
                .iter_mut()
                .filter(|member| member.is_selected());
            selected.next();
            selected.for_each(|member| member.select(false));
        }
        let usable = self
            .members
            .iter()
            .filter(|member| member.is_usable())
            .count();
        for member in &mut self.members {
            member.use_if(usable >= minimum.into(), mode);
        }
    }
}
