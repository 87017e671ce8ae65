//! Node `policy`: does the policy of the session permit the packet?
//!
//! Only sessions whose policy has something to do for each packet come here. Out: back to where the packet came from.
//! Drops: `rate-exceeded-up`, `rate-exceeded-down`.
use crate::api::SessionIndex;
use crate::drops::DropReason;
use crate::nodes::ip::Family;
use crate::tables::sessions::Sessions;

/// A packet of so many octets from the subscriber of an upstream entry, which the session has counted already.
#[inline(never)]
pub(crate) fn up(
    sessions: &mut Sessions,
    slot: u32,
    family: Family,
    octets: usize,
    now: u64,
) -> Result<(), DropReason> {
    let index = sessions.index(slot);
    let line = sessions.policy(index);
    if line.is_none_or(|line| line.up.permits(octets, now)) {
        return Ok(());
    }
    sessions.up(slot).counts.uncount(family, octets);
    Err(DropReason::RateExceededUp)
}

/// A packet of so many octets to a subscriber, which the session counts later.
#[inline(never)]
pub(crate) fn down(
    sessions: &mut Sessions,
    index: SessionIndex,
    octets: usize,
    now: u64,
) -> Result<(), DropReason> {
    let line = sessions.policy(index);
    match line.is_none_or(|line| line.down.permits(octets, now)) {
        true => Ok(()),
        false => Err(DropReason::RateExceededDown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::*;
    use crate::tables::sessions::Sources;
    use policy::{PacketSettings, Rate};
    use wire::eth::{MacAddr, Tags};

    const HZ: u64 = Sessions::HZ;

    fn entry(packets: PacketSettings) -> SessionEntry {
        SessionEntry {
            index: SessionIndex(1),
            port: PortIndex(0),
            tags: Tags::NONE,
            peer_mac: MacAddr([2; 6]),
            gateway_mac: MacAddr([4; 6]),
            pppoe_session_id: 7,
            instance: InstanceIndex(0),
            packets,
            subscriber: 0,
            ipv4: None,
            ipv6: None,
            routed: [].into(),
        }
    }

    #[test]
    fn what_is_above_the_rate_is_dropped_and_not_counted() {
        let mut sessions = Sessions::with(8, &[0..=4095]);
        let packets = PacketSettings {
            rate_up: Some(Rate(1000)),
            ..PacketSettings::with_mtu(1492)
        };
        sessions.set(entry(packets), Sources::default(), 0);
        let slot = sessions.slot(0, 0, 7).unwrap();
        assert!(sessions.up(slot).is_policed());
        let mut send = |now| {
            let is_full = sessions.up(slot).counts.count(Family::V6, 1500);
            assert!(!is_full);
            up(&mut sessions, slot, Family::V6, 1500, now)
        };
        // a burst of 15,000 octets, then 125,000 octets a second
        let at_once = (0..20).filter(|_| send(9).is_ok()).count();
        assert_eq!(at_once, 10);
        assert_eq!(send(9), Err(DropReason::RateExceededUp));
        assert_eq!(send(9 + HZ * 1500 / 125_000), Ok(()));
        let usage = sessions.usage(SessionIndex(1)).unwrap();
        assert_eq!((usage.ipv6.up_packets, usage.ipv6.up_octets), (11, 16_500));
        // the other direction has no limit
        assert!((0..100).all(|_| down(&mut sessions, SessionIndex(1), 1500, 9).is_ok()));
    }

    #[test]
    fn a_change_of_something_else_leaves_the_tokens_as_they_are() {
        let mut sessions = Sessions::with(8, &[0..=4095]);
        let packets = PacketSettings {
            rate_down: Some(Rate(1000)),
            ..PacketSettings::with_mtu(1492)
        };
        sessions.set(entry(packets), Sources::default(), 0);
        let index = SessionIndex(1);
        while down(&mut sessions, index, 1500, 9).is_ok() {}
        let mtu = PacketSettings {
            mtu: Some(1400),
            ..packets
        };
        sessions.set(entry(mtu), Sources::default(), 0);
        assert!(down(&mut sessions, index, 1400, 9).is_err());
        assert!(sessions.is_whole(index) && sessions.any_policed());
        // without a rate there is no line any more, and the next session at its place begins anew
        sessions.set(entry(PacketSettings::with_mtu(1492)), Sources::default(), 0);
        assert!(!sessions.any_policed() && sessions.policy(index).is_none());
        sessions.set(entry(packets), Sources::default(), 0);
        assert_eq!(down(&mut sessions, index, 1400, 9), Ok(()));
        sessions.remove(index).unwrap();
        assert!(!sessions.any_policed());
    }
}
