//! Captures of Ethernet frames with their times.
use std::time::Duration;
use wire::pcap::{self, Capture, ETHERNET};

/// The frames of a capture, in the order of the file.
pub fn read(bytes: &[u8]) -> Vec<(Duration, Vec<u8>)> {
    let capture = Capture::parse(bytes).expect("a capture");
    let ethernet = capture.interfaces.iter().all(|i| i.link == ETHERNET);
    assert!(ethernet, "the capture is not of Ethernet frames");
    let frame = |packet: &pcap::Packet<'_>| {
        let whole = packet.length as usize == packet.octets.len();
        assert!(whole, "a frame was cut off in capturing");
        (Duration::from_nanos(packet.at), packet.octets.to_vec())
    };
    capture.packets.iter().map(frame).collect()
}

/// A capture of frames.
pub fn write(frames: &[(Duration, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    pcap::begin("", &mut file);
    let (name, link) = (None, ETHERNET);
    pcap::Interface { name, link }.emit(&mut file);
    for (at, octets) in frames {
        let packet = pcap::Packet {
            interface: 0,
            at: at.as_nanos() as u64,
            length: octets.len() as u32,
            octets,
        };
        packet.emit("", None, &mut file);
    }
    file
}
