//! Characteristics of a subscriber's access loop, which an access node adds to discovery packets (TR-101 §3.9.2, table 3; TR-156): rates,
//! interleaving delays and encapsulation. RADIUS has an attribute with the same number for each of them (RFC 4679 §3.3).

/// Number of a rate or delay in a vendor tag of PPPoE, and of its attribute in RADIUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the names of the RFC say it
pub enum LoopValue {
    ActualRateUp = 0x81,
    ActualRateDown = 0x82,
    MinimumRateUp = 0x83,
    MinimumRateDown = 0x84,
    AttainableRateUp = 0x85,
    AttainableRateDown = 0x86,
    MaximumRateUp = 0x87,
    MaximumRateDown = 0x88,
    MinimumLowPowerRateUp = 0x89,
    MinimumLowPowerRateDown = 0x8a,
    MaximumDelayUp = 0x8b,
    ActualDelayUp = 0x8c,
    MaximumDelayDown = 0x8d,
    ActualDelayDown = 0x8e,
}

const ENCAPSULATION: u8 = 0x90;
const IWF_SESSION: u8 = 0xfe;

impl LoopValue {
    /// Every rate and delay, by number.
    pub const ALL: [LoopValue; 14] = [
        LoopValue::ActualRateUp,
        LoopValue::ActualRateDown,
        LoopValue::MinimumRateUp,
        LoopValue::MinimumRateDown,
        LoopValue::AttainableRateUp,
        LoopValue::AttainableRateDown,
        LoopValue::MaximumRateUp,
        LoopValue::MaximumRateDown,
        LoopValue::MinimumLowPowerRateUp,
        LoopValue::MinimumLowPowerRateDown,
        LoopValue::MaximumDelayUp,
        LoopValue::ActualDelayUp,
        LoopValue::MaximumDelayDown,
        LoopValue::ActualDelayDown,
    ];

    /// Whether it is a rate in kbit/s. Otherwise it is a delay in milliseconds.
    pub const fn is_rate(self) -> bool {
        (self as u8) < LoopValue::MaximumDelayUp as u8
    }

    /// Name for operators.
    pub const fn label(self) -> &'static str {
        match self {
            LoopValue::ActualRateUp => "line rate up",
            LoopValue::ActualRateDown => "line rate down",
            LoopValue::MinimumRateUp => "minimum line rate up",
            LoopValue::MinimumRateDown => "minimum line rate down",
            LoopValue::AttainableRateUp => "attainable line rate up",
            LoopValue::AttainableRateDown => "attainable line rate down",
            LoopValue::MaximumRateUp => "maximum line rate up",
            LoopValue::MaximumRateDown => "maximum line rate down",
            LoopValue::MinimumLowPowerRateUp => "minimum low-power line rate up",
            LoopValue::MinimumLowPowerRateDown => "minimum low-power line rate down",
            LoopValue::MaximumDelayUp => "maximum interleaving delay up",
            LoopValue::ActualDelayUp => "interleaving delay up",
            LoopValue::MaximumDelayDown => "maximum interleaving delay down",
            LoopValue::ActualDelayDown => "interleaving delay down",
        }
    }

    const fn place(self) -> usize {
        self as usize - LoopValue::ActualRateUp as usize
    }
}

/// What an access node says of an access loop beside its ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AccessLoop {
    values: [Option<u32>; 14],
    /// Data link, encapsulation 1 and encapsulation 2 (RFC 4679 §3.3.17).
    pub encapsulation: Option<[u8; 3]>,
    /// Whether the access node converts PPP over ATM to PPPoE (IWF).
    pub is_interworked: bool,
}

impl AccessLoop {
    /// Reads the options of an access node: of several with one number the first that has the right length. `None` without any.
    pub fn read<'a>(options: impl IntoIterator<Item = (u8, &'a [u8])>) -> Option<Self> {
        let mut read = AccessLoop::default();
        for (kind, value) in options {
            let found = LoopValue::ALL
                .into_iter()
                .find(|known| *known as u8 == kind);
            match (found, kind, value) {
                (Some(found), _, &[a, b, c, d]) => {
                    let place = &mut read.values[found.place()];
                    place.get_or_insert(u32::from_be_bytes([a, b, c, d]));
                }
                (None, ENCAPSULATION, &[a, b, c]) => {
                    read.encapsulation.get_or_insert([a, b, c]);
                }
                (None, IWF_SESSION, []) => read.is_interworked = true,
                _ => {}
            }
        }
        (read != AccessLoop::default()).then_some(read)
    }

    /// A rate in kbit/s, or a delay in milliseconds.
    pub fn get(&self, value: LoopValue) -> Option<u32> {
        self.values[value.place()]
    }

    /// All rates in kbit/s and delays in milliseconds that are known, by number.
    pub fn values(&self) -> impl Iterator<Item = (LoopValue, u32)> + '_ {
        let all = LoopValue::ALL.into_iter();
        all.filter_map(|value| Some((value, self.get(value)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_of_the_wrong_length_drop_no_others() {
        let options: [(u8, &[u8]); 8] = [
            (0x81, &[0, 0, 1]),
            (0x82, &[0, 1, 0x86, 0xa0]),
            (0x81, &[0, 0, 0x27, 0x10]),
            (0x81, &[0, 0, 0, 1]),
            (0x8f, &[0, 0, 0, 1]),
            (0x90, &[2, 2]),
            (0x90, &[2, 2, 1]),
            (0xfe, &[]),
        ];
        let read = AccessLoop::read(options).unwrap();
        let values: Vec<_> = read.values().collect();
        let expected = [
            (LoopValue::ActualRateUp, 10_000),
            (LoopValue::ActualRateDown, 100_000),
        ];
        assert_eq!(values, expected);
        assert_eq!(read.encapsulation, Some([2, 2, 1]));
        assert!(read.is_interworked);
    }

    #[test]
    fn nothing_usable_is_nothing() {
        let useless: [(u8, &[u8]); 2] = [(0x80, b"1234"), (0x82, b"12345")];
        assert_eq!(AccessLoop::read(useless), None);
    }

    #[test]
    fn every_value_has_its_number() {
        for (n, value) in LoopValue::ALL.into_iter().enumerate() {
            assert_eq!(value as usize, 0x81 + n);
            assert_eq!(value.is_rate(), n < 10);
        }
    }

    proptest! {
        #[test]
        fn options_never_panic(options: Vec<(u8, Vec<u8>)>) {
            let options = options.iter().map(|(kind, value)| (*kind, &value[..]));
            let _ = AccessLoop::read(options);
        }
    }
}
