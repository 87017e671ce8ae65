//! A member of a group: what is known of its link and of its partner.

use crate::{LinkGroup, Mode, Settings};
use core::num::NonZeroU32;
use core::time::Duration;
use wire::lacp::{Lacpdu, Party, State};

/// Between two LACPDUs, and after what time without one the partner is forgotten (§6.4.4).
const FAST: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(90);
/// LACPDUs in a second, at most (§6.4.16).
const MOST: usize = 3;

/// What a member has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// LACPDUs sent.
    pub sent: u64,
    /// LACPDUs received.
    pub received: u64,
    /// Frames of the slow protocols that were neither a LACPDU nor a marker.
    pub malformed: u64,
}

/// What was heard of the partner (the receive machine, §6.4.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Heard {
    /// Nothing.
    #[default]
    Nothing,
    /// Nothing for some time; until when that may last.
    Expired(Duration),
    /// Something, which is good until then.
    Current(Duration),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    up: bool,
    /// Speed of the link in Mbit/s, if it is known.
    speed: Option<NonZeroU32>,
    heard: Heard,
    /// What the partner said of itself, unless that is forgotten.
    partner: Option<Party>,
    /// It is one of those that belong together.
    selected: bool,
    receives: bool,
    sends: bool,
    /// The partner has to be told something.
    news: bool,
    /// When it was told the last times, the latest first.
    told: [Option<Duration>; MOST],
    pub counters: Counters,
}

impl Member {
    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn is_selected(&self) -> bool {
        self.selected
    }

    pub fn receives(&self) -> bool {
        self.receives
    }

    pub fn sends(&self) -> bool {
        self.sends
    }

    pub fn partner(&self) -> Option<Party> {
        self.partner
    }

    fn partner_says(&self, state: State) -> bool {
        self.partner
            .is_some_and(|partner| partner.state.contains(state))
    }

    /// The group of links that it belongs to. Without the protocol, partners are not told apart.
    pub fn group(&self, mode: Mode) -> Option<LinkGroup> {
        if !self.up {
            return None;
        }
        let partner = match mode {
            Mode::Off => Party {
                state: State::AGGREGATION,
                ..Party::default()
            },
            _ => self.partner?,
        };
        let alone = !partner.state.contains(State::AGGREGATION);
        let Party {
            system_priority,
            system,
            key,
            port,
            ..
        } = partner;
        let partner = (system_priority, system, key, alone.then_some(port));
        Some(LinkGroup {
            partner,
            speed: self.speed,
        })
    }

    pub fn speed(&self) -> Option<NonZeroU32> {
        self.speed
    }

    /// Says how fast the link is; whether that is new.
    pub fn set_speed(&mut self, speed: Option<NonZeroU32>) -> bool {
        core::mem::replace(&mut self.speed, speed) != speed
    }

    /// Says whether the link is up; whether that is new.
    pub fn set_link(&mut self, now: Duration, up: bool) -> bool {
        if self.up == up {
            return false;
        }
        let Member {
            speed,
            told,
            counters,
            ..
        } = *self;
        *self = Member {
            up,
            speed,
            // The partner shall be heard soon (§6.4.12, EXPIRED).
            heard: if up {
                Heard::Expired(now + SHORT)
            } else {
                Heard::Nothing
            },
            news: up,
            told,
            counters,
            ..Member::default()
        };
        true
    }

    /// The settings are others.
    pub fn changed(&mut self, now: Duration, mode: Mode) {
        self.news = true;
        self.partner = self.partner.filter(|_| mode != Mode::Off);
        // What was heard is good for as long as the new settings say.
        if let Heard::Current(until) = &mut self.heard {
            *until = (*until).min(now + SHORT);
        }
    }

    /// What this end says of the link (§6.4.2.3).
    pub fn state(&self, settings: &Settings) -> State {
        let mut state = State::AGGREGATION;
        state.set(State::ACTIVITY, settings.mode == Mode::Active);
        state.set(State::TIMEOUT, settings.fast);
        state.set(State::SYNCHRONIZATION, self.selected);
        state.set(State::COLLECTING, self.receives);
        state.set(State::DISTRIBUTING, self.sends);
        state.set(State::DEFAULTED, self.heard == Heard::Nothing);
        state.set(State::EXPIRED, matches!(self.heard, Heard::Expired(_)));
        state
    }

    /// Takes a LACPDU; `own` is what this end says of itself (§6.4.9: recordPDU, update_NTT).
    pub fn heard(&mut self, now: Duration, settings: &Settings, own: Party, pdu: &Lacpdu) {
        const TOLD: State = State::ACTIVITY
            .union(State::TIMEOUT)
            .union(State::SYNCHRONIZATION)
            .union(State::AGGREGATION);
        self.counters.received += 1;
        let known = Party {
            state: own.state,
            ..pdu.partner
        } == own;
        let mut partner = pdu.actor;
        let alone = !partner.state.contains(State::AGGREGATION);
        let active = partner.state.contains(State::ACTIVITY)
            || settings.mode == Mode::Active && pdu.partner.state.contains(State::ACTIVITY);
        // What the partner says of the group counts only if it is about this end.
        partner.state.set(
            State::SYNCHRONIZATION,
            partner.state.contains(State::SYNCHRONIZATION) && active && (known || alone),
        );
        self.partner = Some(partner);
        self.news |= !known || pdu.partner.state & TOLD != own.state & TOLD;
        self.heard = Heard::Current(now + if settings.fast { SHORT } else { LONG });
    }

    /// Forgets what was heard too long ago: first that the partner agrees, then the partner (§6.4.12).
    pub fn on_timeout(&mut self, now: Duration) {
        match self.heard {
            Heard::Current(until) if until <= now => {
                self.heard = Heard::Expired(now + SHORT);
                self.news = true;
                if let Some(partner) = &mut self.partner {
                    partner.state.remove(State::SYNCHRONIZATION);
                    partner.state.insert(State::TIMEOUT);
                }
            }
            Heard::Expired(until) if until <= now => {
                self.heard = Heard::Nothing;
                self.partner = None;
            }
            _ => {}
        }
    }

    /// Whether it could be used.
    pub fn is_usable(&self) -> bool {
        self.selected && (self.partner_says(State::SYNCHRONIZATION) || self.partner.is_none())
    }

    pub fn select(&mut self, selected: bool) {
        self.news |= self.selected != selected;
        self.selected = selected;
    }

    /// Uses it, if it is usable and there are enough (the mux machine, §6.4.13). It sends when the partner receives.
    pub fn use_if(&mut self, enough: bool, mode: Mode) {
        let receives = enough && self.is_usable();
        let sends = receives && (mode == Mode::Off || self.partner_says(State::COLLECTING));
        self.news |= (self.receives, self.sends) != (receives, sends);
        (self.receives, self.sends) = (receives, sends);
    }

    /// How often it sends, if somebody speaks by himself (§6.4.14).
    fn interval(&self, settings: &Settings) -> Option<Duration> {
        let speaks = match settings.mode {
            Mode::Active => true,
            Mode::Passive => self.partner_says(State::ACTIVITY),
            Mode::Off => false,
        };
        let fast = !matches!(self.heard, Heard::Current(_)) || self.partner_says(State::TIMEOUT);
        (self.up && speaks).then_some(if fast { FAST } else { SLOW })
    }

    /// When it sends next.
    fn sends_at(&self, settings: &Settings) -> Option<Duration> {
        let interval = self.interval(settings)?;
        let [Some(last), .., first] = self.told else {
            return Some(Duration::ZERO);
        };
        let allowed = first.map_or(Duration::ZERO, |first| first + FAST);
        Some(if self.news { allowed } else { last + interval })
    }

    /// Whether it has to send now.
    pub fn is_due(&self, now: Duration, settings: &Settings) -> bool {
        self.sends_at(settings).is_some_and(|at| at <= now)
    }

    /// Notes that it has sent.
    pub fn sent(&mut self, now: Duration, settings: &Settings) {
        debug_assert!(self.is_due(now, settings));
        self.news = false;
        self.told.rotate_right(1);
        self.told[0] = Some(now);
        self.counters.sent += 1;
    }

    /// When there is something to do.
    pub fn poll_at(&self, settings: &Settings) -> Option<Duration> {
        let forgets = match self.heard {
            Heard::Nothing => None,
            Heard::Expired(until) | Heard::Current(until) => Some(until),
        };
        forgets.into_iter().chain(self.sends_at(settings)).min()
    }
}
