//! The elements that say which frames and packets a rule is about.
use super::codec::{Cursor, Fault, Outcome, Value};
use crate::eth::MacAddr;

/// C-TAG or S-TAG (§8.2.94, §8.2.95): what of a tag is compared or set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// VLAN identifier.
    pub vid: Option<u16>,
    /// Priority code point.
    pub pcp: Option<u8>,
    /// Drop eligible indicator.
    pub dei: Option<bool>,
}

impl VlanTag {
    /// Any tag with this VLAN identifier.
    pub const fn vid(vid: u16) -> Self {
        VlanTag {
            vid: Some(vid),
            pcp: None,
            dei: None,
        }
    }
}

/// Not in the order of a tag on the wire: octet 6 is VID[11:8], DEI, PCP, and octet 7 is VID[7:0].
impl Value for VlanTag {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let [flags, high, low] = Cursor(payload).array()?;
        Ok(VlanTag {
            vid: (flags & 4 != 0).then_some(u16::from(high >> 4) << 8 | u16::from(low)),
            pcp: (flags & 1 != 0).then_some(high & 7),
            dei: (flags & 2 != 0).then_some(high & 8 != 0),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.vid.is_some()) << 2
            | u8::from(self.dei.is_some()) << 1
            | u8::from(self.pcp.is_some());
        let [vid_high, vid_low] = self.vid.unwrap_or(0).to_be_bytes();
        let dei = u8::from(self.dei.unwrap_or(false));
        out.extend_from_slice(&[
            flags,
            vid_high << 4 | dei << 3 | self.pcp.unwrap_or(0) & 7,
            vid_low,
        ]);
    }
}

/// MAC address (§8.2.93): one, or a range up to the `upper_` one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddresses {
    /// Source address, or the first one of a range.
    pub source: Option<MacAddr>,
    /// Destination address, or the first one of a range.
    pub destination: Option<MacAddr>,
    /// Last source address of a range.
    pub upper_source: Option<MacAddr>,
    /// Last destination address of a range.
    pub upper_destination: Option<MacAddr>,
}

impl MacAddresses {
    /// Frames from one station.
    pub fn from_station(source: MacAddr) -> Self {
        MacAddresses {
            source: Some(source),
            ..Self::default()
        }
    }
}

impl Value for MacAddresses {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let mut mac = |bit: u8| {
            if flags & bit != 0 {
                Ok(Some(MacAddr(cursor.array()?)))
            } else {
                Ok(None)
            }
        };
        Ok(MacAddresses {
            source: mac(1)?,
            destination: mac(2)?,
            upper_source: mac(4)?,
            upper_destination: mac(8)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let all = [
            self.source,
            self.destination,
            self.upper_source,
            self.upper_destination,
        ];
        out.push(
            all.iter()
                .rev()
                .fold(0, |flags, mac| flags << 1 | u8::from(mac.is_some())),
        );
        for mac in all.into_iter().flatten() {
            out.extend_from_slice(&mac.0);
        }
    }
}

/// SDF Filter (§8.2.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SdfFilter {
    /// An IPFilterRule (RFC 6733 §4.3.1), written for the downlink: `permit out 17 from any 547 to assigned`.
    pub flow_description: Option<String>,
    /// ToS or traffic class, and its mask.
    pub traffic_class: Option<u16>,
    /// Security parameter index.
    pub spi: Option<u32>,
    /// IPv6 flow label, 20 bits.
    pub flow_label: Option<u32>,
    /// A number by which both directions share the filter.
    pub filter_id: Option<u32>,
}

impl Value for SdfFilter {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let _spare = cursor.u8()?;
        let is = |bit: u8| flags & bit != 0;
        let mut filter = SdfFilter::default();
        if is(1) {
            let length = cursor.u16()?;
            let text = core::str::from_utf8(cursor.take(usize::from(length))?)
                .map_err(|_| Fault::INCORRECT)?;
            filter.flow_description = Some(text.to_owned());
        }
        if is(2) {
            filter.traffic_class = Some(cursor.u16()?);
        }
        if is(4) {
            filter.spi = Some(cursor.u32()?);
        }
        if is(8) {
            filter.flow_label = Some(cursor.u24()?);
        }
        if is(16) {
            filter.filter_id = Some(cursor.u32()?);
        }
        Ok(filter)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let bits = [
            self.flow_description.is_some(),
            self.traffic_class.is_some(),
            self.spi.is_some(),
            self.flow_label.is_some(),
            self.filter_id.is_some(),
        ];
        out.extend_from_slice(&[
            bits.iter()
                .rev()
                .fold(0, |flags, bit| flags << 1 | u8::from(*bit)),
            0,
        ]);
        if let Some(text) = &self.flow_description {
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        if let Some(class) = self.traffic_class {
            class.write(out);
        }
        if let Some(spi) = self.spi {
            spi.write(out);
        }
        if let Some(label) = self.flow_label {
            out.extend_from_slice(&label.to_be_bytes()[1..]);
        }
        if let Some(id) = self.filter_id {
            id.write(out);
        }
    }
}
