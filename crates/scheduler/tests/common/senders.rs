//! Senders that heed what a queue tells them, as TCP does, on the clock of the test.
use super::*;
use std::collections::BTreeMap;

/// How a sender takes marks and drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sends at a rate, whatever happens (kbit/s).
    Constant(u64),
    /// TCP Reno (RFC 5681), which halves what it has on the way.
    Reno,
    /// The same with ECN (RFC 3168): a mark is as a drop.
    RenoEcn,
    /// Reduces what it has on the way by half of the part that was marked, in each round trip (RFC 8257), and says ECT(1), as L4S wants.
    Scalable,
}

/// A sender and its receiver.
#[derive(Clone, Debug)]
pub struct Sender {
    pub kind: Kind,
    pub to: SubscriberIndex,
    pub class: usize,
    pub octets: u32,
    /// Round trip without queues.
    pub rtt: u64,
    /// What it says of congestion, if not what its kind does.
    pub ecn: Option<Ecn>,
    window: f64,
    threshold: f64,
    in_flight: u32,
    /// When it begins, and when it sends next if it has a rate.
    due: u64,
    /// What was sent before this time has been answered for.
    reacted: u64,
    /// Part of its packets that was marked (RFC 8257 §3.3), and what was told in this round trip.
    marked: f64,
    round: (u64, u32, u32),
}

impl Sender {
    pub fn new(kind: Kind, to: SubscriberIndex, rtt: u64) -> Self {
        Sender {
            kind,
            to,
            class: 0,
            octets: 1500,
            rtt,
            ecn: None,
            window: 10.0,
            threshold: f64::MAX,
            in_flight: 0,
            due: 0,
            reacted: 0,
            marked: 1.0,
            round: (0, 0, 0),
        }
    }

    /// The same that begins later.
    pub fn begins(self, due: u64) -> Self {
        Sender { due, ..self }
    }

    /// The same with packets of another size.
    pub fn of_octets(self, octets: u32) -> Self {
        Sender { octets, ..self }
    }

    fn ecn(&self) -> Ecn {
        if let Some(ecn) = self.ecn {
            return ecn;
        }
        match self.kind {
            Kind::Constant(_) | Kind::Reno => Ecn::NotCapable,
            Kind::RenoEcn => Ecn::Classic,
            Kind::Scalable => Ecn::L4s,
        }
    }

    /// Whether it sends a packet now.
    fn sends(&mut self, now: u64) -> bool {
        if let Kind::Constant(kbps) = self.kind {
            let is_due = self.due <= now;
            if is_due {
                self.due = self.due.max(now.saturating_sub(MS))
                    + u64::from(self.octets) * 8_000_000 / kbps;
            }
            return is_due;
        }
        let has_room = self.due <= now && f64::from(self.in_flight) < self.window;
        self.in_flight += u32::from(has_room);
        has_room
    }

    /// It is told what has become of a packet that it has sent at a time.
    fn told(&mut self, sent: u64, now: u64, news: News) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match news {
            News::Lost => self.reduce(sent, now, 0.5),
            News::Came { is_marked } if self.kind == Kind::Scalable => self.count(now, is_marked),
            News::Came { is_marked: true } => self.reduce(sent, now, 0.5),
            News::Came { .. } => self.grow(),
        }
    }

    fn grow(&mut self) {
        self.window += match self.window < self.threshold {
            true => 1.0,
            false => 1.0 / self.window,
        };
    }

    /// Once for each round trip.
    fn reduce(&mut self, sent: u64, now: u64, part: f64) {
        if sent >= self.reacted {
            self.window = (self.window * (1.0 - part)).max(2.0);
            (self.threshold, self.reacted) = (self.window, now);
        }
    }

    fn count(&mut self, now: u64, is_marked: bool) {
        let (until, all, marked) = self.round;
        self.round = (until, all + 1, marked + u32::from(is_marked));
        if is_marked {
            self.threshold = self.threshold.min(self.window);
        } else {
            self.grow();
        }
        if now >= until {
            let part = f64::from(self.round.2) / f64::from(self.round.1);
            self.marked += (part - self.marked) / 16.0;
            if self.round.2 > 0 {
                self.window = (self.window * (1.0 - self.marked / 2.0)).max(2.0);
            }
            self.round = (now + self.rtt, 0, 0);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum News {
    Lost,
    Came { is_marked: bool },
}

/// What has become of the packets of a sender.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub octets: u64,
    pub lost: u64,
    pub marked: u64,
    /// How long each packet that left has waited.
    pub waited: Vec<u64>,
    /// Octets that left in each tenth of a second.
    pub tenths: Vec<u64>,
}

impl Outcome {
    /// The time within which so many of a hundred packets left.
    pub fn percentile(&self, percent: usize) -> u64 {
        let mut waited = self.waited.clone();
        waited.sort_unstable();
        waited[(waited.len() * percent / 100).min(waited.len() - 1)]
    }

    /// The rate in a time that begins when what is counted does.
    pub fn kbps(&self, time: u64) -> u64 {
        (u128::from(self.octets) * 8_000_000 / u128::from(time)) as u64
    }
}

/// Lets senders send for a time; what is told begins after `warm`. `each` is called before each round.
pub fn send(
    tree: &mut Tree,
    senders: &mut [Sender],
    (warm, end): (u64, u64),
    mut each: impl FnMut(&mut Tree, u64),
) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::default(); senders.len()];
    let mut on_the_way: BTreeMap<u64, Vec<(usize, u64, News)>> = BTreeMap::new();
    let mut now = 0;
    while now < end {
        each(tree, now);
        let later = on_the_way.split_off(&(now + 1));
        for (at, sent, news) in core::mem::replace(&mut on_the_way, later)
            .into_values()
            .flatten()
        {
            senders[at].told(sent, now, news);
        }
        let mut news = Vec::new();
        for (at, sender) in senders.iter_mut().enumerate() {
            while sender.sends(now) {
                let frame = Frame {
                    octets: sender.octets,
                    stamp: 0,
                    to: sender.to,
                    class: sender.class,
                    came: now,
                    flow: at as u32,
                    ecn: sender.ecn(),
                };
                match tree.offer(sender.to, sender.class, frame, now) {
                    Ok(None) => {}
                    Ok(Some(frame)) => news.push((frame, true)),
                    Err((_, frame)) => news.push((frame, false)),
                }
            }
        }
        let mut dropped = Vec::new();
        tree.dequeue(
            now,
            usize::MAX,
            &mut |_, frame| news.push((frame, true)),
            &mut |_, frame| {
                dropped.push((frame, false));
            },
        );
        for (frame, has_left) in news.into_iter().chain(dropped) {
            let (at, outcome) = (frame.flow as usize, &mut outcomes[frame.flow as usize]);
            let is_marked = frame.ecn == Ecn::Congested;
            if now >= warm {
                outcome.count(&frame, has_left, now, now - warm);
            }
            let news = match has_left {
                true => News::Came { is_marked },
                false => News::Lost,
            };
            let when = on_the_way.entry(now + senders[at].rtt).or_default();
            when.push((at, frame.came, news));
        }
        now += ROUND;
    }
    outcomes
}

impl Outcome {
    fn count(&mut self, frame: &Frame, has_left: bool, now: u64, since: u64) {
        self.marked += u64::from(frame.ecn == Ecn::Congested);
        if !has_left {
            self.lost += 1;
            return;
        }
        self.octets += u64::from(frame.octets);
        self.waited.push(now - frame.came);
        let tenth = (since / (100 * MS)) as usize;
        if self.tenths.len() <= tenth {
            self.tenths.resize(tenth + 1, 0);
        }
        self.tenths[tenth] += u64::from(frame.octets);
    }
}
