//! What only sessions need whose policy has something to do for each packet: one cache line for both directions, which packets of other
//! sessions do not touch.
use crate::police::Policer;
use policy::PacketSettings;

/// What the policy of a session does for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct PolicyLine {
    /// Rate of packets from the subscriber.
    pub up: Policer,
    /// Rate of packets to the subscriber.
    pub down: Policer,
}

const _: () = assert!(size_of::<PolicyLine>() == 64);

impl PolicyLine {
    /// The line of these settings; `hz` ticks are a second.
    pub fn of(packets: &PacketSettings, hz: u64) -> Self {
        PolicyLine {
            up: Policer::new(packets.rate_up, hz),
            down: Policer::new(packets.rate_down, hz),
        }
    }

    /// Whether there is something to do for packets.
    pub fn has_rates(&self) -> bool {
        self.up.has_limit() || self.down.has_limit()
    }

    /// Whether two lines say the same, whatever tokens there are.
    pub fn agrees(self, other: PolicyLine) -> bool {
        self.continuing(other) == other
    }

    /// The line with the state of another one.
    pub fn continuing(self, other: PolicyLine) -> Self {
        PolicyLine {
            up: self.up.with_tokens_of(other.up),
            down: self.down.with_tokens_of(other.down),
        }
    }
}
