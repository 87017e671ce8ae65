//! What sessions have whose policies have something to do for each packet: policy lines, meters, classes, and rates of all sessions of a
//! subscriber. Other sessions take no memory for them, unless later ones have some.
use super::Sessions;
use crate::api::{PolicyState, SessionEntry, SessionIndex};
use crate::compiled::{Classes, CompiledPolicy, PolicerSettings};
use crate::police::Tokens;
use crate::tables::classes::{ClassCounts, ClassLine, ClassLines, FurtherLine};
use crate::tables::homes::{self, Home, HomeLine, Homes};
use crate::tables::meters::MeterLine;
use crate::tables::policies::{CompiledPolicies, Passes, PolicyLine};
use dpdk::Lines;
use policy::{Direction, PacketSettings, Rate};

/// By the place of the session, one line of each table for each direction.
pub(super) struct Policing {
    pub lines: dpdk::Table<PolicyLine>,
    /// By the place of the session, what lets packets to the subscriber pass; as long as the lines.
    pub down: dpdk::Table<Passes>,
    /// Meters of those whose policies have a policer.
    meters: dpdk::Table<MeterLine>,
    /// Of those whose policies have classes.
    classes: ClassLines,
    homes: Homes,
    /// Policy lines of sessions.
    policed: usize,
    /// Ticks of a second.
    hz: u64,
}

/// What policies have counted of a session that moves, and its tokens.
pub(super) struct PolicedState {
    ways: [WayState; 2],
    /// That of the subscriber.
    home: Option<HomeLine>,
}

/// The same of a direction.
#[derive(Clone, Copy, Default)]
struct WayState {
    policy: PolicyLine,
    meter: MeterLine,
    classes: (ClassLine, Option<FurtherLine>),
}

impl Policing {
    pub fn new(sessions: usize, hz: u64) -> Result<Self, dpdk::Error> {
        Ok(Policing {
            lines: dpdk::Table::new(2 * sessions)?,
            down: dpdk::Table::new(sessions)?,
            meters: dpdk::Table::new(2 * sessions)?,
            classes: ClassLines::new(2 * sessions)?,
            homes: Homes::new(sessions)?,
            policed: 0,
            hz,
        })
    }

    /// Gives the session at a place what its entry says; `None`: there is no session any more.
    pub fn set(
        &mut self,
        place: usize,
        former: Option<&SessionEntry>,
        entry: Option<&SessionEntry>,
    ) {
        let is_limited = |entry: &&SessionEntry| homes::is_limited(&entry.packets);
        let (former, now) = (former.filter(is_limited), entry.filter(is_limited));
        // first in, then out: a subscriber with one session keeps its tokens
        let home = now.map(|entry| self.homes.join(entry.subscriber, &entry.packets, self.hz));
        if let Some(former) = former {
            self.homes.leave(former.subscriber);
        }
        for direction in Direction::BOTH {
            let at = line_place(place, direction);
            match entry {
                Some(entry) => {
                    self.set_line(at, PolicyLine::of(entry, home, direction, self.hz));
                }
                None => self.clear_line(at),
            }
        }
        if let Some(down) = self.down.get_mut(place) {
            *down = entry.map_or(Passes::Freely, |entry| Passes::of(entry, Direction::Down));
        }
    }

    /// Takes what a session has.
    pub fn release(&mut self, place: usize, entry: &SessionEntry) -> PolicedState {
        let ways = Direction::BOTH.map(|direction| {
            let at = line_place(place, direction);
            match self.lines.get(at) {
                Some(line) => WayState {
                    policy: *line,
                    meter: self.meters[at],
                    classes: self.classes.get(at),
                },
                None => WayState::default(),
            }
        });
        let home = self.homes.line(entry.subscriber);
        self.set(place, Some(entry), None);
        PolicedState { ways, home }
    }

    /// Gives a session at a place that has none what it had at another worker.
    pub fn adopt(&mut self, place: usize, entry: &SessionEntry, state: PolicedState) {
        self.set(place, None, Some(entry));
        if let Some(home) = state.home {
            self.homes.adopt(entry.subscriber, home);
        }
        for (direction, way) in Direction::BOTH.into_iter().zip(state.ways) {
            let at = line_place(place, direction);
            let Some(line) = self.lines.get_mut(at).filter(|line| line.is_needed()) else {
                continue;
            };
            *line = line.continuing(way.policy);
            if line.policy.is_some() {
                self.meters[at] = way.meter;
                self.classes.set(at, way.classes);
            }
        }
    }

    fn set_line(&mut self, place: usize, line: PolicyLine) {
        if line.is_needed() && self.lines.len() <= place {
            self.lines.resize(place + 1, PolicyLine::default());
            self.down.resize(place / 2 + 1, Passes::Freely);
            self.meters.resize(place + 1, MeterLine::default());
            self.classes.resize(place + 1);
        }
        let Some(there) = self.lines.get_mut(place) else {
            return;
        };
        self.policed -= usize::from(there.is_needed());
        self.policed += usize::from(line.is_needed());
        let lost_policy = there.policy.is_some() && line.policy.is_none();
        *there = line.continuing(*there);
        let meter = &mut self.meters[place];
        if lost_policy && there.policer.has_limit() {
            there.policer.empty_until(meter.full_at());
        }
        // The session's rate may be another one. Who gets a policy again has the tokens that it had, or each time would be a burst.
        meter.forget();
    }

    /// Forgets what a session has that is gone.
    fn clear_line(&mut self, place: usize) {
        let Some(there) = self.lines.get_mut(place) else {
            return;
        };
        self.policed -= usize::from(there.is_needed());
        *there = PolicyLine::default();
        self.meters[place] = MeterLine::default();
        self.classes.clear(place);
    }

    /// What lets packets to the subscriber of the session at a place pass.
    #[inline(always)]
    pub fn passes_down(&self, place: usize) -> Passes {
        self.down.get(place).copied().unwrap_or_default()
    }

    /// What the lines of a session would be.
    pub fn expected(&self, entry: &SessionEntry, direction: Direction) -> PolicyLine {
        let home = self.homes.of(entry.subscriber);
        PolicyLine::of(entry, home, direction, self.hz)
    }
}

/// A session's lines of a direction. Most packets need the first one alone.
pub(crate) struct PolicedLines<'a> {
    pub policy: &'a mut PolicyLine,
    // Not a slice, whose place would be loaded for every packet.
    meters: &'a mut dpdk::Table<MeterLine>,
    classes: &'a mut ClassLines,
    homes: &'a mut Homes,
    place: usize,
    direction: Direction,
}

impl Sessions {
    /// Is there a session with a policy line?
    #[inline(always)]
    pub fn any_policed(&self) -> bool {
        self.policing.policed > 0
    }

    /// The policy line of a session that has one.
    #[inline(always)]
    pub fn policy(&mut self, index: SessionIndex, direction: Direction) -> Option<&mut PolicyLine> {
        let place = line_place(self.place(index), direction);
        let line = self.policing.lines.get_mut(place);
        line.filter(|line| line.is_needed())
    }

    /// The lines of a session whose policy has something to do.
    #[inline(always)]
    pub fn policing(
        &mut self,
        index: SessionIndex,
        direction: Direction,
    ) -> Option<PolicedLines<'_>> {
        let place = line_place(self.place(index), direction);
        let Policing {
            lines,
            meters,
            classes,
            homes,
            ..
        } = &mut self.policing;
        Some(PolicedLines {
            policy: lines.get_mut(place).filter(|line| line.is_needed())?,
            meters,
            classes,
            homes,
            place,
            direction,
        })
    }

    /// Makes the meter of a session whose policy or rate has changed.
    #[cold]
    #[inline(never)]
    pub fn renew_meter(
        &mut self,
        index: SessionIndex,
        direction: Direction,
        (policy, policer): (&CompiledPolicy, &PolicerSettings),
        now: u64,
    ) {
        let [committed, rate] = self
            .get(index)
            .map_or([None; 2], |entry| own_rates(&entry.packets, direction));
        let place = line_place(self.place(index), direction);
        let settings = policer.meter.of_session(committed, rate);
        let hz = self.policing.hz;
        let full_at = self.policing.lines[place].policer.full_at();
        let made_of = (policy.compilation(), settings);
        self.policing.meters[place].renew(made_of, full_at, now, hz);
    }

    /// What the policy of a session has done in a direction.
    pub fn policy_state(
        &self,
        index: SessionIndex,
        direction: Direction,
        policies: &CompiledPolicies,
    ) -> Option<PolicyState> {
        let place = line_place(self.place(index), direction);
        let line = self.policing.lines.get(place)?;
        let exceeded = |home| self.policing.homes.exceeded(home, direction);
        let compiled = line.policy.and_then(|policy| policies.get(policy));
        let counts = |classes| self.policing.classes.counts_of(place, classes);
        Some(PolicyState {
            subscriber_exceeded_packets: line.home.map_or(0, exceeded),
            yellow_packets: self
                .policing
                .meters
                .get(place)
                .map_or(0, |meter| meter.yellow),
            classes: compiled.and_then(CompiledPolicy::classes).and_then(counts),
            ..line.state()?
        })
    }

    /// Lines of further classes that sessions have.
    #[cfg(test)]
    pub fn further_class_lines(&self) -> usize {
        self.policing.classes.further()
    }

    /// What lets packets to the subscriber of a session pass.
    #[inline(always)]
    pub fn passes_down(&self, index: SessionIndex) -> Passes {
        self.policing.passes_down(self.place(index))
    }

    /// Asks for that, if there is a session with a policy line.
    #[inline(always)]
    pub fn ask_for_passes_down(&self, index: SessionIndex) {
        if self.any_policed() {
            let place = self.place(index) as u32;
            dpdk::prefetch_early(Lines::of(&self.policing.down).at(place));
        }
    }

    /// Asks for the policy line of a session, and for what else its policy needs.
    #[inline(always)]
    pub fn ask_for_policy(
        &self,
        (index, direction): (SessionIndex, Direction),
        compiled: Option<&CompiledPolicy>,
    ) {
        let place = line_place(self.place(index), direction);
        let Policing {
            lines,
            meters,
            classes,
            ..
        } = &self.policing;
        dpdk::prefetch(Lines::of(lines).at(place as u32));
        let Some(compiled) = compiled else {
            return;
        };
        if compiled.policer().is_some() {
            dpdk::prefetch(Lines::of(meters).at(place as u32));
        }
        if compiled.classes().is_some() {
            classes.prefetch(place);
        }
    }
}

impl PolicedLines<'_> {
    /// The direction of the packets.
    #[inline(always)]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Are they those of what is sent to the subscriber?
    #[inline(always)]
    pub fn is_down(&self) -> bool {
        self.direction == Direction::Down
    }

    /// The meter of the policy's policer.
    #[inline(always)]
    pub fn meter(&mut self) -> &mut MeterLine {
        &mut self.meters[self.place]
    }

    /// Makes tokens and counters of classes those of a compilation.
    #[inline(always)]
    pub fn follow_classes(&mut self, compiled: &CompiledPolicy, classes: &Classes, now: u64) {
        let of = (self.place, self.direction);
        self.classes.follow(of, compiled, classes, now);
    }

    /// Tokens and counters of a class.
    #[inline(always)]
    pub fn class(&mut self, position: usize) -> (&mut Tokens, &mut ClassCounts) {
        self.classes.class(self.place, position)
    }

    /// Whether a packet of so many octets is within the rate of all sessions of the subscriber.
    #[inline(always)]
    pub fn home_permits(&mut self, home: Home, octets: usize, now: u64) -> bool {
        self.homes.permits(home, self.direction, octets, now)
    }
}

/// Committed and largest rate of a session alone.
pub(crate) fn own_rates(packets: &PacketSettings, direction: Direction) -> [Option<Rate>; 2] {
    match direction {
        Direction::Up => [packets.committed_rate_up, packets.rate_up],
        Direction::Down => [packets.committed_rate_down, packets.rate_down],
    }
}

/// Place of the lines of a direction.
#[inline(always)]
pub(super) fn line_place(place: usize, direction: Direction) -> usize {
    2 * place + usize::from(direction == Direction::Down)
}
