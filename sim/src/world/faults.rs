//! What homes and misfortunes do.

use super::{Event, Phase, Who, World};
use crate::access_network::{FIXED, SubscriberAction};
use crate::plan::{Fault, HOMES, Part};
use crate::server::Health;
use control::counters::Counter;
use core::time::Duration;
use cpe::State;
use rand::Rng;
use std::collections::BTreeSet;

impl World<'_> {
    pub(super) fn act(&mut self, home: usize) {
        if self.phase != Phase::Storm {
            return;
        }
        let reboots = FIXED.contains(&home);
        let action = self.houses[home].next_action(&mut self.random, reboots);
        self.say(|| format!("home{home} wants to {action:?}"));
        let mut after = Duration::from_millis(self.random.random_range(200..60_000));
        let now = self.now;
        match action {
            SubscriberAction::Dial | SubscriberAction::Guess => {
                let honest = action == SubscriberAction::Dial;
                if self.houses[home].is_honest() != honest {
                    self.houses[home].reset(&mut self.random, honest);
                }
                self.houses[home].home.dial(now);
            }
            SubscriberAction::HangUp => self.houses[home].home.hang_up(now),
            SubscriberAction::Vanish => {
                self.houses[home].reset(&mut self.random, true);
                after = Duration::from_millis(self.random.random_range(0..20_000));
            }
            SubscriberAction::Reboot => {
                self.houses[home].reset(&mut self.random, true);
                self.houses[home].home.dial(now);
                if self.random.random_bool(0.3) {
                    after = Duration::from_millis(self.random.random_range(0..2_000));
                }
            }
            SubscriberAction::Stay => {}
        }
        self.drain_home(home);
        self.later(after, Event::Action(home));
    }

    pub(super) fn change(&mut self, number: usize, breaks: bool) {
        let fault = self.plan.faults[number].1.clone();
        self.say(|| format!("{fault:?} {}", if breaks { "BREAKS" } else { "is mended" }));
        self.summary.faults += u64::from(breaks);
        match fault {
            Fault::ControlPlane | Fault::Power => {
                let before = self.count_down((0, 0), breaks);
                if breaks && before == (0, 1) {
                    self.kill_control_plane();
                }
                if breaks && fault == Fault::Power {
                    self.lose_power();
                }
                if before == (1, 0) {
                    self.supervise();
                }
            }
            Fault::UserPlane(n) => match self.count_down((1, n), breaks) {
                (0, 1) => self.kill_user_plane(n),
                (1, 0) => self.start_user_plane(n),
                _ => {}
            },
            Fault::Server(n) => self.servers[n] = if breaks { Health::Dead } else { Health::Well },
            Fault::WrongSecret(n) => {
                self.servers[n] = if breaks { Health::Wrong } else { Health::Well }
            }
            Fault::Cut(links) => {
                for link in links {
                    let cuts = self.cuts.entry(link).or_default();
                    *cuts = if breaks {
                        *cuts + 1
                    } else {
                        cuts.saturating_sub(1)
                    };
                }
            }
            Fault::Stop(part) => self.stop(number, part, breaks),
            Fault::Clock(part, seconds) if breaks => {
                *self.clocks.entry(part).or_default() += i64::from(seconds);
                self.radius.clock_was_set |= part == Part::Control;
            }
            Fault::MoveIn(home) if breaks => self.move_in(home),
            Fault::Impostor(plane, times) if breaks => self.claim(plane, times),
            Fault::Flip if breaks => {
                let found = self.disk.flip().err();
                found.into_iter().for_each(|what| self.wrong(what));
            }
            Fault::Worker(plane, worker) => self.stand_still(plane, worker, breaks),
            Fault::Recount(plane) if breaks => self.recount(plane),
            Fault::Liar(plane, times) if breaks => self.lie(plane, times),
            Fault::Stranger(plane, times) if breaks => self.intrude(plane, times),
            Fault::Hostile(home, times) if breaks => self.misbehave(home, times),
            Fault::Noise(home, packets) if breaks => self.houses[home].noise = packets,
            Fault::Change(_) => self.reconfigure(number, breaks),
            Fault::Liar(..)
            | Fault::Stranger(..)
            | Fault::Hostile(..)
            | Fault::Flip
            | Fault::Recount(_) => {}
            Fault::Clock(..) | Fault::MoveIn(_) | Fault::Impostor(..) | Fault::Noise(..) => {}
            Fault::Disk(what) => {
                self.disk.suffer(number, breaks.then_some(what));
                self.sync();
            }
        }
    }

    /// How many faults kept a part down before, and do now.
    pub(super) fn count_down(&mut self, part: (u8, usize), breaks: bool) -> (u32, u32) {
        let count = self.down.entry(part).or_default();
        let before = *count;
        *count = if breaks { before + 1 } else { before - 1 };
        (before, *count)
    }

    /// Sessions that the control plane gave up with their user planes.
    pub(crate) fn given_up(&self) -> u64 {
        let control = self.control.as_ref();
        control.map_or(0, |control| {
            control.counters().get(Counter::TakenOutUnheard)
        })
    }

    pub(super) fn kill_control_plane(&mut self) {
        self.traffic.control_died(self.given_up());
        self.control = None;
        self.stops.remove(&Part::Control);
        self.armed.remove(&Who::Control);
        self.mi_connections.clear();
        self.letting_go = None;
        self.disk.crash(&mut self.random);
        self.lose_history();
    }

    /// The history's thread is gone: it had written some of what it was handed, without saying so.
    fn lose_history(&mut self) {
        let written = self.random.random_range(0..=self.disk.history.len());
        let blocks: Vec<_> = self.disk.history.drain(..).take(written).collect();
        self.remember(blocks);
    }

    pub(super) fn remember(&mut self, blocks: Vec<(u64, Vec<u8>)>) {
        for (number, block) in blocks {
            let found = self.history.take(number, &block).err();
            found.into_iter().for_each(|what| self.wrong(what));
        }
    }

    /// The control plane's machine starts anew, and its monotonic clock with it. Only the wall clock says then how long a
    /// session lasted (decision 0006), so it must not have been set.
    fn lose_power(&mut self) {
        self.disk.lose_power(&mut self.random);
        if !self.radius.clock_was_set {
            self.boots += 1;
            self.origins.insert(Part::Control, self.now);
        }
    }

    /// Starts the control plane, unless something keeps it down, and tries again while it cannot open its store.
    pub(super) fn supervise(&mut self) {
        let is_down = self.down.get(&(0, 0)).is_some_and(|count| *count > 0);
        if is_down || self.control.is_some() {
            return;
        }
        match self.disk.can_be_opened() {
            true => self.start_control_plane(),
            false => {
                self.say(|| "the control plane cannot open its store".into());
                self.later(Duration::from_secs(1), Event::Supervise);
            }
        }
    }

    pub(super) fn kill_user_plane(&mut self, plane: usize) {
        let unreported = self.planes[plane].take().map_or(0, |up| up.unreported());
        let closed = self.radius.carried().map(|(seid, _)| seid);
        self.traffic.died(plane, &closed.collect(), unreported);
        self.hang_up_mi(plane);
        self.stops.remove(&Part::UserPlane(plane));
        self.armed.remove(&Who::UserPlane(plane));
    }

    /// A worker stands still, or goes on. In a user plane that starts meanwhile it works.
    fn stand_still(&mut self, plane: usize, worker: usize, still: bool) {
        if let Some(up) = &mut self.planes[plane] {
            up.stand_still(worker % up.workers.count(), still);
            self.drain_user_plane(plane);
        }
    }

    /// Counters begin anew: what was counted and not reported is lost, and nobody is told.
    fn recount(&mut self, plane: usize) {
        if let Some(up) = &mut self.planes[plane] {
            up.workers.forget_usage();
            let closed = self.radius.carried().map(|(seid, _)| seid);
            self.traffic.recounted(plane, &closed.collect());
        }
    }

    /// A household hangs up and leaves; another one moves in, and dials.
    fn move_in(&mut self, home: usize) {
        self.houses[home].home.hang_up(self.now);
        self.drain_home(home);
        self.houses[home].move_in(&mut self.random);
        self.houses[home].home.dial(self.now);
        self.drain_home(home);
    }

    /// The storm is over: everybody wants to be online, and stay.
    pub(super) fn calm_down(&mut self) {
        self.say(|| "--- calm".into());
        self.phase = Phase::Calm;
        for home in 0..HOMES {
            // One that never asks whether its session still lives cannot know that it ended when nobody could tell it so. One that was
            // misunderstood may have agreed on less than it wants.
            let house = &mut self.houses[home];
            house.noise = 0;
            let is_wrong = !house.is_honest() || std::mem::take(&mut house.is_misunderstood);
            if is_wrong || house.home.config().echo_interval.is_none() {
                house.reset(&mut self.random, true);
            }
        }
        self.keep_online();
    }

    /// Everybody who is offline dials again.
    pub(super) fn keep_online(&mut self) {
        for home in 0..HOMES {
            self.houses[home].home.dial(self.now);
            self.drain_home(home);
        }
        self.settle_instants();
    }

    pub(super) fn hang_up_all(&mut self) {
        self.say(|| "--- everybody hangs up".into());
        self.phase = Phase::End;
        for home in 0..HOMES {
            self.houses[home].home.hang_up(self.now);
            self.drain_home(home);
        }
        self.settle_instants();
    }

    /// Homes that are not online.
    pub(crate) fn offline(&self) -> Vec<usize> {
        let homes = self.houses.iter().enumerate();
        homes
            .filter(|(_, h)| h.home.state() != State::Online)
            .map(|(n, _)| n)
            .collect()
    }

    /// Every live net, and who announces it.
    pub(crate) fn announced(&self) -> BTreeSet<(ipnet::IpNet, usize)> {
        let planes = self.planes.iter().enumerate();
        planes
            .flat_map(|(n, up)| up.iter().flat_map(|up| &up.nets).map(move |a| (a.net, n)))
            .collect()
    }
}
