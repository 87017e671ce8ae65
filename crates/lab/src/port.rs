//! What the homes' frames come and go by: a TAP of the lab, or an interface of this machine.

use anyhow::{Context, Result, ensure};
use pcap::{Active, Capture, Linktype};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime};
use tun_rs::SyncDevice;
use wire::eth::{TPID_8021Q, Tags};

/// The largest frame that is read: two tags around the largest packet of PPPoE, and some room.
pub const FRAME: usize = 2048;
/// Room for what comes while the thread does not run.
const BUFFER: i32 = 32 << 20;
/// Frames of other hosts alone; ours would come back. libpcap itself filters the first frame, and drops it at `inbound`, which only the
/// kernel can tell: so frames to the homes of `sluice load` (02:00:5e) are taken before that is asked.
const FILTER: &str = "(ether[0:2] = 0x0200 and ether[2] = 0x5e) or inbound";
/// Octets of a frame beside the tags and an IP packet: Ethernet (14), PPPoE (6), PPP (2).
const AROUND_IP: usize = 22;
/// Octets of the Ethernet header, which an interface's MTU does not count.
const ETHERNET: usize = 14;
/// Octets of a tag.
const TAG: usize = 4;

/// An Ethernet port that homes are on.
pub enum Port {
    /// A TAP: nobody else gets its frames.
    Tap(SyncDevice),
    /// A packet socket on an interface, which others may use too.
    Interface(Box<Capture<Active>>),
}

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Its octets, from the begin of the buffer.
    pub length: usize,
    /// When the kernel got it, if it says so.
    pub at: Option<SystemTime>,
}

impl Port {
    /// A port on an interface of this machine's network namespace. The interface hears of all frames from now on.
    ///
    /// # Errors
    /// There is no such Ethernet interface, it is down, or this process may not open packet sockets (`CAP_NET_RAW`).
    pub fn interface(name: &str) -> Result<Self> {
        ensure!(
            is_name(name) && fs::exists(format!("/sys/class/net/{name}"))?,
            "there is no interface {name}"
        );
        let open = || -> Result<Capture<Active>, pcap::Error> {
            let mut capture = Capture::from_device(name)?
                .promisc(true)
                .immediate_mode(true)
                .snaplen(FRAME as i32)
                .buffer_size(BUFFER)
                .open()?;
            capture.filter(FILTER, true)?;
            capture.setnonblock()
        };
        let capture = open().with_context(|| format!("cannot open interface {name}"))?;
        ensure!(
            capture.get_datalink() == Linktype::ETHERNET,
            "interface {name} is no Ethernet interface"
        );
        Ok(Port::Interface(Box::new(capture)))
    }

    /// Takes the next frame, if one has come.
    pub fn receive(&mut self, buffer: &mut [u8; FRAME]) -> Result<Option<Arrived>> {
        match self {
            Port::Tap(tap) => match tap.recv(buffer) {
                Ok(length) => Ok(Some(Arrived { length, at: None })),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error).context("cannot read the homes' TAP"),
            },
            Port::Interface(capture) => match capture.next_packet() {
                Ok(packet) => {
                    let length = packet.data.len().min(FRAME);
                    buffer[..length].copy_from_slice(&packet.data[..length]);
                    let at = at(packet.header.ts.tv_sec, packet.header.ts.tv_usec);
                    Ok(Some(Arrived { length, at }))
                }
                Err(pcap::Error::TimeoutExpired) => Ok(None),
                Err(error) => Err(error).context("cannot read the homes' interface"),
            },
        }
    }

    /// Sends a frame; false if the kernel does not take it.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match self {
            Port::Tap(tap) => tap.send(frame).is_ok(),
            Port::Interface(capture) => capture.sendpacket(frame).is_ok(),
        }
    }

    /// Whether frames of others pass here too.
    pub fn is_shared(&self) -> bool {
        matches!(self, Port::Interface(_))
    }

    /// Frames that came and were lost here so far, because this process was too slow for them.
    pub fn overflowed(&mut self) -> u64 {
        match self {
            Port::Tap(_) => 0,
            Port::Interface(capture) => capture.stats().map_or(0, |stat| stat.dropped.into()),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Tap(tap) => tap.as_fd(),
            Port::Interface(capture) => capture.as_fd(),
        }
    }
}

/// The largest IP packet that PPPoE behind these tags carries over an interface.
///
/// # Errors
/// There is no such interface.
pub fn largest_packet(interface: &str, tags: Tags) -> Result<usize> {
    ensure!(is_name(interface), "there is no interface {interface}");
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/mtu"));
    let text = text.with_context(|| format!("there is no interface {interface}"))?;
    let mtu: usize = text.trim().parse()?;
    Ok(room(mtu, tags))
}

/// Octets of an IP packet in the largest frame that a packet socket takes.
///
/// Linux lets a frame be longer by one tag if its outer EtherType is 0x8100, and for no other (`packet_extra_vlan_len_allowed`).
fn room(mtu: usize, tags: Tags) -> usize {
    let granted = match tags.outer {
        Some(outer) if outer.tpid == TPID_8021Q => TAG,
        _ => 0,
    };
    (mtu + ETHERNET + granted).saturating_sub(AROUND_IP + TAG * tags.count())
}

/// Whether it may be the name of an interface, which is also the name of a file.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() < 16 && !name.starts_with('.') && !name.contains('/')
}

fn at(seconds: i64, micros: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?)
        + Duration::from_micros(u64::try_from(micros).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::eth::{TPID_8021AD, Tag};

    #[test]
    fn names_of_other_files_are_no_interfaces() {
        for name in ["", ".", "..", "../net", "a/b", "averyveryverylongname"] {
            assert!(!is_name(name), "{name}");
            assert!(largest_packet(name, Tags::NONE).is_err());
        }
        assert!(is_name("eth1.100"));
    }

    #[test]
    fn there_is_room_for_a_packet_between_the_headers() {
        let (single, qinq) = (Tags::single(1), Tags::qinq(1, 2));
        // The loopback's MTU of 65536, whatever it is used for.
        assert_eq!(largest_packet("lo", Tags::NONE).unwrap(), 65_528);
        assert_eq!(largest_packet("lo", single).unwrap(), 65_528);
        assert_eq!(largest_packet("lo", qinq).unwrap(), 65_524);
    }

    #[test]
    fn only_an_outer_8100_makes_room_for_itself() {
        let service = |tags: Tags| {
            let outer = tags.outer.map(|tag| Tag {
                tpid: TPID_8021AD,
                ..tag
            });
            Tags { outer, ..tags }
        };
        let (single, qinq) = (Tags::single(1), Tags::qinq(1, 2));
        for (mtu, tags, largest) in [
            (1500, Tags::NONE, 1492),
            (1500, single, 1492),
            (1500, service(single), 1488),
            (1504, service(single), 1492),
            (1500, qinq, 1488),
            (1504, qinq, 1492),
            (1504, service(qinq), 1488),
            (1508, service(qinq), 1492),
            (0, service(qinq), 0),
        ] {
            assert_eq!(room(mtu, tags), largest, "{mtu} {tags}");
        }
    }
}
