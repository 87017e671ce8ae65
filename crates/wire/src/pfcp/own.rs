//! Sluice's own elements, for what neither 3GPP nor the BBF has.
//!
//! No private enterprise number has been assigned to the project yet. Until one is, [`ENTERPRISE`] is 32473, the number
//! that RFC 5612 reserves for documentation: no vendor can ever hold it, so it cannot collide with a real one, and a
//! foreign peer skips the elements as those of an unknown enterprise. It is written here and nowhere else.
use super::codec::{IeId, flags};

/// The enterprise of our own elements: a placeholder, see above.
pub const ENTERPRISE: u16 = 32473;

/// Type of [`SluiceFeatures`].
pub const FEATURES: IeId = IeId::vendor(0x8001, ENTERPRISE);
/// Type of the outer tag's TPID in a traffic endpoint: two octets. 3GPP's S-TAG and C-TAG have none, but access networks
/// use 0x8100 as well as 0x88a8 outside. Without it the outer one of two tags has 0x88a8, a single one 0x8100.
pub const OUTER_TPID: IeId = IeId::vendor(0x8002, ENTERPRISE);

flags! {
    /// What this implementation can do beyond TR-459, in both directions of an association's setup.
    pub struct SluiceFeatures(u32), least 1 {
        /// The default session may have a rule from the control plane to the access side, whose packets carry CPR-NSH
        /// with the logical port and whole frames: answers to discovery without per-subscriber state.
        DEFAULT_CP_TO_UP_RULE = 0x01,
    }
}
