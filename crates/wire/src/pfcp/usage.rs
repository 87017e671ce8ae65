//! Measurements, gates and rates.
use super::codec::{Cursor, Outcome, Value};

/// Volume Measurement (§8.2.44).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeMeasurement {
    /// Octets both ways.
    pub total_octets: Option<u64>,
    /// Octets from the subscriber.
    pub uplink_octets: Option<u64>,
    /// Octets to the subscriber.
    pub downlink_octets: Option<u64>,
    /// Packets both ways.
    pub total_packets: Option<u64>,
    /// Packets from the subscriber.
    pub uplink_packets: Option<u64>,
    /// Packets to the subscriber.
    pub downlink_packets: Option<u64>,
}

impl VolumeMeasurement {
    fn fields(&self) -> [Option<u64>; 6] {
        [
            self.total_octets,
            self.uplink_octets,
            self.downlink_octets,
            self.total_packets,
            self.uplink_packets,
            self.downlink_packets,
        ]
    }
}

impl Value for VolumeMeasurement {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let mut count = |bit: u8| {
            if flags & bit != 0 {
                cursor.u64().map(Some)
            } else {
                Ok(None)
            }
        };
        Ok(VolumeMeasurement {
            total_octets: count(0x01)?,
            uplink_octets: count(0x02)?,
            downlink_octets: count(0x04)?,
            total_packets: count(0x08)?,
            uplink_packets: count(0x10)?,
            downlink_packets: count(0x20)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let fields = self.fields();
        out.push(
            fields
                .iter()
                .rev()
                .fold(0, |flags, field| flags << 1 | u8::from(field.is_some())),
        );
        for count in fields.into_iter().flatten() {
            out.extend_from_slice(&count.to_be_bytes());
        }
    }
}

/// Gate Status (§8.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GateStatus {
    /// Packets from the subscriber pass.
    pub uplink_open: bool,
    /// Packets to the subscriber pass.
    pub downlink_open: bool,
}

impl GateStatus {
    /// Both directions open.
    pub const OPEN: GateStatus = GateStatus {
        uplink_open: true,
        downlink_open: true,
    };
}

/// Everything but 0 is closed (values 2 and 3 "shall be interpreted as the value 1").
impl Value for GateStatus {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let gates = Cursor(payload).u8()?;
        Ok(GateStatus {
            uplink_open: gates >> 2 & 3 == 0,
            downlink_open: gates & 3 == 0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(!self.uplink_open) << 2 | u8::from(!self.downlink_open));
    }
}

/// MBR or GBR (§8.2.8, §8.2.9), in kilobits per second, 40 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BitRate {
    /// From the subscriber.
    pub uplink_kbps: u64,
    /// To the subscriber.
    pub downlink_kbps: u64,
}

impl Value for BitRate {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let mut rate =
            || -> Outcome<u64> { Ok(u64::from(cursor.u8()?) << 32 | u64::from(cursor.u32()?)) };
        Ok(BitRate {
            uplink_kbps: rate()?,
            downlink_kbps: rate()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        for rate in [self.uplink_kbps, self.downlink_kbps] {
            out.extend_from_slice(&rate.to_be_bytes()[3..]);
        }
    }
}
