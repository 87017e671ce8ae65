//! The homes' verified traffic: who sends what to whom, and what was found of what came.

use super::{Far, PORT, family_of, overhead, size_of};
use crate::internet::Reach;
use cpe::{
    Arrival, Counts, Datagram, Family, Histogram, Home, Homes, Label, Pace, Party, Stamp, State,
    Verdict, Verifier,
};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Everything about the traffic of an access network's homes.
pub(super) struct Traffic {
    /// The number of the first home in the whole lab.
    first: u32,
    run: u64,
    far: Far,
    /// The largest IP packet that the port carries.
    largest: usize,
    pace: Pace,
    /// Packets sent, those included that the kernel refused: the next one's number.
    sent: Vec<[u64; 2]>,
    /// Of those, how many had come to the reflector, as far as it has said.
    reflected: Vec<[u32; 2]>,
    verifier: Verifier,
    delays: [Histogram; 2],
    addresses: Vec<[Option<IpAddr>; 2]>,
    /// Whose address it is, or was last.
    owners: HashMap<IpAddr, u32>,
}

/// A packet that is ready to be sent.
pub(super) struct Packet {
    pub(super) family: Family,
    pub(super) frame: Vec<u8>,
}

impl Traffic {
    /// Traffic of `count` of the lab's `all` homes, each of which sends once in an interval in each family.
    pub(super) fn new(
        [first, count, all]: [u32; 3],
        far: Far,
        interval: Duration,
        run: u64,
        largest: usize,
    ) -> Self {
        let homes = count as usize;
        Traffic {
            first,
            run,
            far,
            largest,
            pace: Pace::new(count, interval, Duration::ZERO),
            sent: vec![[0; 2]; homes],
            reflected: vec![[0; 2]; homes],
            verifier: Verifier::new(run, all),
            delays: [Histogram::default(), Histogram::default()],
            addresses: vec![[None; 2]; homes],
            owners: HashMap::new(),
        }
    }

    /// Homes whose turn to send has come.
    pub(super) fn due(&mut self, now: Duration) -> impl Iterator<Item = u32> + use<> {
        self.pace.due(now)
    }

    /// When the next home's turn comes.
    pub(super) fn next_at(&self) -> Duration {
        self.pace.next_at()
    }

    /// Begins anew after a pause.
    pub(super) fn restart(&mut self, now: Duration) {
        self.pace.restart(now);
    }

    /// A home has got an address.
    pub(super) fn addressed(&mut self, home: u32, address: IpAddr) {
        let family = family_of(address);
        let before = self.addresses[home as usize][family as usize].replace(address);
        if let Some(before) = before
            && self.owners.get(&before) == Some(&home)
        {
            self.owners.remove(&before);
        }
        self.owners.insert(address, home);
        self.tell(home, family, Some(address));
    }

    /// A home has an address of a family no more. What it has sent before may still arrive.
    pub(super) fn unaddressed(&self, home: u32, family: Family) {
        self.tell(home, family, None);
    }

    fn tell(&self, home: u32, family: Family, address: Option<IpAddr>) {
        if let Far::Internet { reach, .. } = &self.far {
            // An internet that has gone is noticed by whoever watches it.
            let _ = reach.send(Reach {
                home: self.first + home,
                family,
                address,
            });
        }
    }

    /// To which other home a home sends, if it sends to homes.
    fn neighbour(&self, home: u32) -> u32 {
        (home + 1) % self.sent.len() as u32
    }

    /// The next packet of a home in a family; `None` if there is nobody to send to. `may_hear` says which homes may be sent to.
    pub(super) fn packet(
        &self,
        home: u32,
        family: Family,
        homes: &Homes,
        may_hear: impl Fn(u32) -> bool,
        now: Duration,
    ) -> Option<Packet> {
        let all = homes.as_slice();
        let (to, address, most) = match &self.far {
            Far::Internet { host, .. } => (Party::Internet, host[family as usize], usize::MAX),
            Far::Reflector(hosts) => (Party::Internet, hosts[family as usize]?, usize::MAX),
            Far::Homes => {
                let other = self.neighbour(home);
                let there = &all[other as usize];
                if other == home || there.state() != State::Online || !may_hear(other) {
                    return None;
                }
                let to = Party::Home(self.first + other);
                (to, address(there, family)?, there.mtu().into())
            }
        };
        let sequence = self.sent[home as usize][family as usize];
        let label = Label {
            run: self.run,
            from: Party::Home(self.first + home),
            to,
            family,
            sequence,
            stamp: Stamp {
                sent: now.as_nanos() as u64,
                reflected: 0,
            },
        };
        let own: usize = all[home as usize].mtu().into();
        let size = size_of(sequence).min(own).min(most).min(self.largest);
        let mut payload = Vec::with_capacity(1500);
        label.emit(size.saturating_sub(overhead(family)), &mut payload);
        let frame = all[home as usize].datagram(address, PORT, PORT, &payload)?;
        Some(Packet { family, frame })
    }

    /// A packet was sent, or refused by the kernel, which is a loss.
    pub(super) fn sent(&mut self, home: u32, family: Family) {
        self.sent[home as usize][family as usize] += 1;
    }

    /// Judges a datagram that came to a home at `at`.
    pub(super) fn arrived(
        &mut self,
        home: u32,
        datagram: &Datagram,
        at: Duration,
        homes: &Homes,
    ) -> Verdict {
        let family = family_of(datagram.source);
        let label = Label::parse(datagram.payload);
        let behind = label.and_then(|label| self.is_behind(label.from, datagram.source, homes));
        let arrival = Arrival {
            at: Party::Home(self.first + home),
            from: self.owner_of(datagram.source).or(behind),
            family,
        };
        let verdict = self.verifier.check_label(arrival, label);
        if matches!(verdict, Verdict::InOrder | Verdict::Late)
            && let Some(Label { stamp, .. }) = label
        {
            // The lab's internet host has another clock, and tells no time.
            if stamp.sent > 0 {
                let delay = (at.as_nanos() as u64).saturating_sub(stamp.sent);
                self.delays[family as usize].record(Duration::from_nanos(delay));
            }
            let reflected = &mut self.reflected[home as usize][family as usize];
            *reflected = stamp.reflected.max(*reflected);
        }
        verdict
    }

    fn owner_of(&self, source: IpAddr) -> Option<Party> {
        let family = family_of(source) as usize;
        match &self.far {
            Far::Internet { host, .. } => (source == host[family]).then_some(Party::Internet),
            Far::Reflector(hosts) => (Some(source) == hosts[family]).then_some(Party::Internet),
            Far::Homes => {
                let home = self.owners.get(&source)?;
                Some(Party::Home(self.first + home))
            }
        }
    }

    /// The home that a packet names as its sender, if its source is in a prefix that is delegated to that home.
    fn is_behind(&self, sender: Party, source: IpAddr, homes: &Homes) -> Option<Party> {
        let (Far::Homes, Party::Home(number), IpAddr::V6(source)) = (&self.far, sender, source)
        else {
            return None;
        };
        let home = number.checked_sub(self.first)? as usize;
        let mut prefixes = homes.as_slice().get(home)?.delegated().iter();
        prefixes.any(|net| net.contains(&source)).then_some(sender)
    }

    /// Something came that was not even readable as a packet for this home.
    pub(super) fn count_stray(&mut self) {
        self.verifier.count_misdelivered();
    }

    /// What was found of everything that came.
    pub(super) fn counts(&self) -> Counts {
        self.verifier.counts()
    }

    /// Packets that a home has sent, in each family.
    pub(super) fn sent_by(&self, home: u32) -> [u64; 2] {
        self.sent[home as usize]
    }

    /// Packets that have come to a home, in each family.
    pub(super) fn received_by(&self, home: u32) -> [u64; 2] {
        Family::ALL.map(|family| self.verifier.received(self.first + home, family))
    }

    /// What has arrived of the packets that a home has sent, in each family: at the other home, or, behind a reflector, back at
    /// this one. `None` if that is the internet's business.
    pub(super) fn arrived_of(&self, home: u32) -> Option<[Counts; 2]> {
        let at = match self.far {
            Far::Internet { .. } => return None,
            Far::Reflector(_) => home,
            Far::Homes => self.neighbour(home),
        };
        Some(Family::ALL.map(|family| self.verifier.of(self.first + at, family)))
    }

    /// Of the packets that a home has sent: how many had come to the reflector, as far as it has said.
    pub(super) fn reflected_of(&self, home: u32) -> Option<[u64; 2]> {
        let is_reflector = matches!(self.far, Far::Reflector(_));
        is_reflector.then(|| self.reflected[home as usize].map(u64::from))
    }

    /// How long the packets were under way, by family: one way between homes, both ways by a reflector.
    pub(super) fn into_delays(self) -> [Histogram; 2] {
        self.delays
    }
}

fn address(home: &Home, family: Family) -> Option<IpAddr> {
    match family {
        Family::V4 => home.ipv4().map(IpAddr::from),
        Family::V6 => home.source_v6().map(IpAddr::from),
    }
}
