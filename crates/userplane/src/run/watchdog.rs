//! Finds ports whose driver has stopped for good.
//!
//! AF_XDP sockets on veth, in copy mode, were seen to stop when packets came faster than they were taken. The fill ring is empty
//! then, and DPDK's driver refills it only after it received a packet. Only opening the port again helps.

use std::time::Duration;

/// Interval between two checks of the ports.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Checks in a row at which a port must have lost packets and received none. A worker without CPU time for a moment looks the
/// same.
const STRIKES: u8 = 5;

/// Receive counters of a port since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Received packets.
    pub packets: u64,
    /// Packets that the driver lost.
    pub lost: u64,
}

/// Checks every port.
#[derive(Debug, Default)]
pub struct Watchdog {
    last: Vec<(Received, u8)>,
}

impl Watchdog {
    /// Checks the ports. Returns the first port that has stopped.
    pub fn look(&mut self, ports: impl IntoIterator<Item = Received>) -> Option<usize> {
        let mut stopped = None;
        for (index, now) in ports.into_iter().enumerate() {
            if self.last.len() <= index {
                self.last.push((now, 0));
            }
            let (last, strikes) = &mut self.last[index];
            // A restart would not help a port that never received a packet: all its packets are too large or damaged.
            let deaf = now.packets > 0 && now.lost > last.lost && now.packets == last.packets;
            *strikes = if deaf { *strikes + 1 } else { 0 };
            *last = now;
            if *strikes >= STRIKES {
                stopped = stopped.or(Some(index));
            }
        }
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(packets: u64, lost: u64) -> [Received; 2] {
        let healthy = Received {
            packets: packets + lost,
            lost,
        };
        [healthy, Received { packets, lost }]
    }

    #[test]
    fn a_port_that_only_loses_has_stopped() {
        let mut dog = Watchdog::default();
        assert_eq!(dog.look(received(7, 0)), None);
        for lost in 1..STRIKES.into() {
            assert_eq!(dog.look(received(7, lost)), None);
        }
        assert_eq!(dog.look(received(7, STRIKES.into())), Some(1));
    }

    #[test]
    fn a_port_that_never_received_anything_is_left_alone() {
        let mut dog = Watchdog::default();
        for lost in 0..100 {
            assert_eq!(dog.look([Received { packets: 0, lost }]), None);
        }
    }

    #[test]
    fn whatever_arrives_or_silence_starts_the_count_anew() {
        let mut dog = Watchdog::default();
        let mut lost = 0;
        for round in 0..20_u64 {
            for _ in 1..STRIKES {
                lost += 1;
                assert_eq!(dog.look(received(round / 2, lost)), None);
            }
            // In every other round a packet arrives; in the others no packet is lost for a second.
            let arrived = round.div_ceil(2);
            assert_eq!(dog.look(received(arrived, lost)), None);
        }
    }
}
