//! Classic pcap files of Ethernet frames, read and written.
use std::time::Duration;

const LINK_TYPE_ETHERNET: u32 = 1;

/// The frames of a capture with their times, in the order of the file.
pub fn read(bytes: &[u8]) -> Vec<(Duration, Vec<u8>)> {
    let (header, mut rest) = bytes.split_at_checked(24).expect("a pcap header");
    let (big, nanos) = match header[..4] {
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, false),
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, false),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, true),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, true),
        _ => panic!(
            "not a classic pcap file: capture with `tcpdump -w`, or convert with `tshark -F pcap`"
        ),
    };
    let word = |bytes: &[u8], at: usize| {
        let octets = bytes[at..at + 4].try_into().unwrap();
        if big {
            u32::from_be_bytes(octets)
        } else {
            u32::from_le_bytes(octets)
        }
    };
    assert_eq!(
        word(header, 20),
        LINK_TYPE_ETHERNET,
        "the capture is not of Ethernet frames"
    );
    let mut frames = Vec::new();
    while let Some((record, after)) = rest.split_at_checked(16) {
        let length = word(record, 8) as usize;
        assert_eq!(
            word(record, 8),
            word(record, 12),
            "a frame was cut off in capturing"
        );
        let (frame, after) = after.split_at_checked(length).expect("a whole frame");
        let fraction = u64::from(word(record, 4)) * if nanos { 1 } else { 1000 };
        let at = Duration::from_secs(word(record, 0).into()) + Duration::from_nanos(fraction);
        frames.push((at, frame.to_vec()));
        rest = after;
    }
    frames
}

/// A capture with times of a nanosecond's resolution.
pub fn write(frames: &[(Duration, Vec<u8>)]) -> Vec<u8> {
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut file = words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, LINK_TYPE_ETHERNET]);
    for (at, frame) in frames {
        let length = frame.len() as u32;
        file.extend(words(&[
            at.as_secs() as u32,
            at.subsec_nanos(),
            length,
            length,
        ]));
        file.extend(frame);
    }
    file
}
