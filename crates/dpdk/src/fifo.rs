//! Packets that wait.
use crate::burst::{BURST, Burst};
use crate::mbuf::Mbuf;
use std::collections::VecDeque;

/// Packets that wait in the order in which they came: so many at most, for which there is room from the start.
pub struct Fifo {
    packets: VecDeque<Mbuf>,
    octets: u64,
    most: usize,
}

impl Fifo {
    /// Room for `most` packets.
    pub fn new(most: usize) -> Self {
        Fifo {
            // packets that a port gave back find room, too
            packets: VecDeque::with_capacity(most + BURST),
            octets: 0,
            most,
        }
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Octets of the frames that wait.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Length of the next frame.
    pub fn next_len(&self) -> Option<usize> {
        self.packets.front().map(Mbuf::frame_len)
    }

    /// Takes a first part of a burst's packets: as many as there is room for, in packets and in `most` octets. The others stay.
    pub fn take(&mut self, burst: &mut Burst, most: u64) {
        let room = self.most.saturating_sub(self.packets.len());
        let mut fits = |mbuf: &Mbuf| {
            let octets = self.octets + mbuf.frame_len() as u64;
            let fits = octets <= most;
            if fits {
                self.octets = octets;
            }
            fits
        };
        let packets = &mut self.packets;
        burst.take_while(room, &mut fits, |mbuf| packets.push_back(mbuf));
    }

    /// Moves the next packet to the end of a burst; false if none waits or the burst is full.
    pub fn send(&mut self, burst: &mut Burst) -> bool {
        let Some(mbuf) = self.packets.pop_front() else {
            return false;
        };
        let octets = mbuf.frame_len() as u64;
        match burst.push(mbuf) {
            Ok(()) => {
                self.octets -= octets;
                true
            }
            Err(mbuf) => {
                self.packets.push_front(mbuf);
                false
            }
        }
    }

    /// Puts packets back that were sent and not taken: they are the next ones again.
    pub fn give_back(&mut self, burst: &mut Burst) {
        while let Some(mbuf) = burst.pop() {
            self.octets += mbuf.frame_len() as u64;
            self.packets.push_front(mbuf);
        }
    }
}
