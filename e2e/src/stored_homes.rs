//! Homes whose sessions come out of a store: nobody dials for them. Their frames are made and read here octet by octet,
//! without the codecs under test.

use crate::frames::{self, Line};
use crate::probe::Probe;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The UDP port at both ends.
const PORT: u16 = 4322;
/// Homes whose packets are under way at a time.
const BATCH: usize = 64;
/// How long a packet is waited for before it is sent again. The machine's own queues may lose one.
const ARRIVES: Duration = Duration::from_millis(500);
/// How often a packet is sent at most.
const TRIES: u32 = 6;
/// Octets of a frame before the IP packet: Ethernet, two tags, PPPoE and PPP.
const HEADER: usize = 30;

/// A home: what is on its line, and its addresses.
#[derive(Clone, Debug)]
pub struct StoredHome {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Outer and inner VLAN id.
    pub tags: [u16; 2],
    /// Its PPPoE session id.
    pub session: u16,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// An address of its IPv6 prefix.
    pub ipv6: Ipv6Addr,
}

/// Both ends of the homes' traffic.
pub struct Ends {
    lines: Probe,
    host: UdpSocket,
    /// The gateway's MAC address, once a frame has come from it.
    gateway: Option<[u8; 6]>,
}

/// What has not arrived yet: the address of the home, and the text that is sent to it or by it.
type Awaited = HashMap<IpAddr, (StoredHome, String)>;

impl Ends {
    /// Joins the access network and the internet host.
    pub fn open(lab: &Lab) -> Result<Self> {
        let host = lab.netns(Place::Internet);
        let host = host.within(|| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT)))??;
        host.set_nonblocking(true)?;
        Ok(Ends {
            lines: Probe::join(lab)?,
            host,
            gateway: None,
        })
    }

    /// A packet of each family arrives at each home, in a frame that is right for its line; and one of each family from
    /// each home arrives at the internet host, from the home's own address. How many packets that were.
    pub fn both_ways(&mut self, homes: &[StoredHome]) -> Result<u64> {
        for batch in homes.chunks(BATCH) {
            self.towards("to", batch, Self::send_down, Self::receive_down)
                .context("from the internet to the homes")?;
            self.towards("from", batch, Self::send_up, Self::receive_up)
                .context("from the homes to the internet")?;
        }
        Ok(4 * homes.len() as u64)
    }

    fn towards(
        &mut self,
        way: &str,
        homes: &[StoredHome],
        send: fn(&Self, IpAddr, &StoredHome, &str) -> Result<()>,
        receive: fn(&mut Self, &mut Awaited) -> Result<bool>,
    ) -> Result<()> {
        let mut awaited = Awaited::new();
        for home in homes {
            for address in [IpAddr::from(home.ipv4), home.ipv6.into()] {
                awaited.insert(address, (home.clone(), format!("{way} {address}")));
            }
        }
        for _ in 0..TRIES {
            for (address, (home, text)) in &awaited {
                send(self, *address, home, text)?;
            }
            let sent = Instant::now();
            while !awaited.is_empty() && sent.elapsed() < ARRIVES {
                if !receive(self, &mut awaited)? {
                    sleep(Duration::from_millis(1));
                }
            }
            if awaited.is_empty() {
                return Ok(());
            }
        }
        let (missing, some) = (awaited.len(), awaited.keys().take(5).collect::<Vec<_>>());
        anyhow::bail!(
            "{missing} of {} packets do not arrive: {some:?}",
            2 * homes.len()
        )
    }

    fn send_down(&self, to: IpAddr, _: &StoredHome, text: &str) -> Result<()> {
        let to = match to {
            IpAddr::V4(four) => four.to_ipv6_mapped(),
            IpAddr::V6(six) => six,
        };
        // While no net is announced that has the address the host has no route: what does not arrive is sent again.
        let _ = self.host.send_to(text.as_bytes(), (to, PORT));
        Ok(())
    }

    fn send_up(&self, from: IpAddr, home: &StoredHome, text: &str) -> Result<()> {
        let gateway = self.gateway.context("the gateway has sent no frame")?;
        let line = Line {
            gateway,
            mac: home.mac,
            tags: home.tags,
            session: home.session,
        };
        self.lines.send(&match from {
            IpAddr::V4(four) => line.udp4(four, INTERNET_V4, PORT, text),
            IpAddr::V6(six) => line.udp6(six, INTERNET_V6, PORT, text),
        })
    }

    /// Takes a frame from the access network, if there is one.
    fn receive_down(&mut self, awaited: &mut Awaited) -> Result<bool> {
        let Some(frame) = self.lines.receive()? else {
            return Ok(false);
        };
        let found = awaited.iter().find(|(_, (_, text))| {
            frame.ends_with(text.as_bytes()) && frame.len() > HEADER + text.len()
        });
        let Some((&address, (home, text))) = found else {
            return Ok(true); // what the gateway says of its own accord, or a copy of what was sent twice
        };
        let source = frames::source(&frame)?;
        let gateway = *self.gateway.get_or_insert(source);
        // The home's place and the gateway's change sides on the way down.
        let line = Line {
            gateway: home.mac,
            mac: gateway,
            tags: home.tags,
            session: home.session,
        };
        let expected = match address {
            IpAddr::V4(four) => line.udp4(INTERNET_V4, four, PORT, text),
            IpAddr::V6(six) => line.udp6(INTERNET_V6, six, PORT, text),
        };
        ensure!(
            frame.len() == expected.len() && frame[..HEADER] == expected[..HEADER],
            "a packet to {address} came as\n{frame:02x?}\nand not as\n{expected:02x?}"
        );
        awaited.remove(&address);
        Ok(true)
    }

    /// Takes a datagram at the internet host, if there is one.
    fn receive_up(&mut self, awaited: &mut Awaited) -> Result<bool> {
        let mut buffer = [0; 2048];
        let Ok((length, from)) = self.host.recv_from(&mut buffer) else {
            return Ok(false);
        };
        let from = match from {
            SocketAddr::V6(six) => six.ip().to_canonical(),
            SocketAddr::V4(four) => IpAddr::from(*four.ip()),
        };
        let text = String::from_utf8_lossy(&buffer[..length]);
        if let Some((_, expected)) = awaited.get(&from) {
            ensure!(text == *expected, "`{text}` came from {from}");
            awaited.remove(&from);
        }
        Ok(true)
    }
}
