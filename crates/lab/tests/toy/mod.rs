//! A toy gateway: just enough PPPoE and PPP to bring homes online, and faults on demand.
//!
//! It grants whatever is asked for and forwards through a TUN of the kernel. It exists to show that the lab notices a
//! gateway that does wrong; a right one is tested by the lab itself.

use cpe::HomeConfig;
use lab::topology::{CORE_PORT, Lab, Place, SUBSCRIBERS_V4, SUBSCRIBERS_V6, UserPlane};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};
use wire::eth::{self, Frame, Header, MacAddr};
use wire::ppp::{self, Control};
use wire::pppoe::{self, Discovery, Tag};
use wire::{ipcp, ipv6, ipv6cp, lcp, nd};

/// The user plane in whose place it is.
pub const UP: UserPlane = UserPlane::One;

const MAC: MacAddr = MacAddr([2, 0, 0x70, 0x79, 0, 1]);
const INTERFACE_ID: u64 = 1;

/// What the toy does wrong with every tenth packet to the homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It never arrives.
    Lose,
    /// It arrives twice.
    Repeat,
    /// It arrives at the next home.
    Misdeliver,
    /// It arrives changed, under a right UDP checksum.
    Corrupt,
}

pub struct Toy {
    running: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Toy {
    pub fn start(lab: &Lab, homes: &[HomeConfig], fault: Fault) -> Self {
        let up = lab.netns(Place::UserPlane(UP));
        let make = || {
            DeviceBuilder::new()
                .name("toy")
                .layer(Layer::L3)
                .mtu(1492)
                .build_sync()
                .unwrap()
        };
        let tun = up.within(make).unwrap();
        tun.set_nonblocking(true).unwrap();
        up.ip(&format!(
            "addr add {}/24 dev {CORE_PORT}\nroute add {SUBSCRIBERS_V4} dev toy proto 96\nroute add {SUBSCRIBERS_V6} dev toy proto 96",
            UP.core_v4()
        ))
        .unwrap();
        let switches = [
            format!("net.ipv6.conf.{CORE_PORT}.disable_ipv6=0"),
            "net.ipv4.ip_forward=1".into(),
            "net.ipv6.conf.all.forwarding=1".into(),
        ];
        for switch in &switches {
            up.run(&["sysctl", "-q", "-w", switch]).unwrap();
        }
        let core_v6 = UP.core_v6();
        up.ip(&format!("addr add {core_v6}/64 dev {CORE_PORT} nodad"))
            .unwrap();
        let wire = lab.tap(UP, "toy").unwrap();
        let running = Arc::new(AtomicBool::new(true));
        let numbers = homes
            .iter()
            .zip(1..)
            .map(|(home, n)| (home.mac, n))
            .collect();
        let mut gateway = Gateway {
            homes: homes.to_vec(),
            numbers,
            wire,
            tun,
            fault,
            count: 0,
        };
        let flag = Arc::clone(&running);
        let thread = std::thread::spawn(move || {
            while flag.load(Ordering::Relaxed) {
                if !gateway.work() {
                    sleep(Duration::from_millis(1));
                }
            }
        });
        Toy { running, thread }
    }

    pub fn stop(self) {
        self.running.store(false, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

struct Gateway {
    homes: Vec<HomeConfig>,
    /// Session ids, from 1.
    numbers: HashMap<MacAddr, u16>,
    wire: SyncDevice,
    tun: SyncDevice,
    fault: Fault,
    count: u64,
}

fn ipv4_of(number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(SUBSCRIBERS_V4.addr().to_bits() + u32::from(number) + 1)
}

fn prefix_of(number: u16) -> Ipv6Addr {
    Ipv6Addr::from_bits(SUBSCRIBERS_V6.addr().to_bits() | u128::from(number) << 64)
}

impl Gateway {
    fn work(&mut self) -> bool {
        let mut buffer = [0; 2048];
        let mut busy = false;
        while let Ok(length) = self.wire.recv(&mut buffer) {
            self.upstream(&buffer[..length]);
            busy = true;
        }
        while let Ok(length) = self.tun.recv(&mut buffer) {
            self.downstream(&mut buffer[..length]);
            busy = true;
        }
        busy
    }

    fn send(&self, number: u16, ethertype: u16, payload: &[u8]) {
        let home = &self.homes[usize::from(number) - 1];
        let mut bytes = Vec::new();
        Header {
            destination: home.mac,
            source: MAC,
            tags: home.tags,
            ethertype,
        }
        .emit(&mut bytes);
        bytes.extend_from_slice(payload);
        self.wire.send(&bytes).unwrap();
    }

    fn send_ppp(&self, number: u16, payload: &[u8]) {
        let mut bytes = Vec::new();
        pppoe::Packet {
            code: pppoe::SESSION,
            session_id: number,
            payload,
        }
        .emit(&mut bytes);
        self.send(number, eth::PPPOE_SESSION, &bytes);
    }

    fn send_control(&self, number: u16, protocol: u16, code: u8, id: u8, data: &[u8]) {
        let mut frame = Vec::new();
        Control { code, id, data }.emit(protocol, &mut frame);
        self.send_ppp(number, &frame);
    }

    fn upstream(&self, bytes: &[u8]) {
        let frame = Frame::parse(bytes).unwrap();
        let Some(&number) = self.numbers.get(&frame.header.source) else {
            return;
        };
        if frame.header.ethertype == eth::PPPOE_DISCOVERY {
            return self.discovery(number, &Discovery::parse(frame.payload).unwrap());
        }
        let packet = pppoe::Packet::parse(frame.payload).unwrap();
        let frame = ppp::Frame::parse(packet.payload).unwrap();
        let control = Control::parse(frame.payload);
        match frame.protocol {
            ppp::LCP => self.lcp(number, &control.unwrap()),
            ppp::IPCP => self.ipcp(number, &control.unwrap()),
            ppp::IPV6CP => self.ipv6cp(number, &control.unwrap()),
            ppp::IPV6 if nd::Packet::parse(frame.payload).is_ok() => self.advertise(number),
            _ => drop(self.tun.send(frame.payload)),
        }
    }

    fn discovery(&self, number: u16, packet: &Discovery) {
        let uniq = packet
            .tags
            .iter()
            .find(|tag| matches!(tag, Tag::HostUniq(_)));
        let (code, session_id) = match packet.code {
            pppoe::PADI => (pppoe::PADO, 0),
            pppoe::PADR => (pppoe::PADS, number),
            _ => return,
        };
        let mut tags = vec![Tag::ServiceName(b""), Tag::AcName(b"toy")];
        tags.extend(uniq);
        let mut bytes = Vec::new();
        Discovery {
            code,
            session_id,
            tags,
        }
        .emit(&mut bytes);
        self.send(number, eth::PPPOE_DISCOVERY, &bytes);
        if code == pppoe::PADS {
            let mut options = Vec::new();
            lcp::Opt::Magic(0x7079).emit(&mut options);
            self.send_control(number, ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &options);
        }
    }

    fn lcp(&self, number: u16, packet: &Control) {
        match packet.code {
            ppp::CONFIGURE_REQUEST => {
                self.send_control(number, ppp::LCP, ppp::CONFIGURE_ACK, packet.id, packet.data)
            }
            ppp::TERMINATE_REQUEST => {
                self.send_control(number, ppp::LCP, ppp::TERMINATE_ACK, packet.id, &[])
            }
            _ => {}
        }
    }

    fn ipcp(&self, number: u16, packet: &Control) {
        if packet.code != ppp::CONFIGURE_REQUEST {
            return;
        }
        let (mut granted, mut own) = (Vec::new(), Vec::new());
        ipcp::Opt::Address(ipv4_of(number)).emit(&mut granted);
        ipcp::Opt::PrimaryDns(UP.core_v4()).emit(&mut granted);
        ipcp::Opt::SecondaryDns(UP.core_v4()).emit(&mut granted);
        if packet.data != granted {
            return self.send_control(number, ppp::IPCP, ppp::CONFIGURE_NAK, packet.id, &granted);
        }
        self.send_control(
            number,
            ppp::IPCP,
            ppp::CONFIGURE_ACK,
            packet.id,
            packet.data,
        );
        ipcp::Opt::Address(UP.core_v4()).emit(&mut own);
        self.send_control(number, ppp::IPCP, ppp::CONFIGURE_REQUEST, 1, &own);
    }

    fn ipv6cp(&self, number: u16, packet: &Control) {
        if packet.code == ppp::CONFIGURE_REQUEST {
            self.send_control(
                number,
                ppp::IPV6CP,
                ppp::CONFIGURE_ACK,
                packet.id,
                packet.data,
            );
            let mut own = Vec::new();
            ipv6cp::Opt::InterfaceId(INTERFACE_ID).emit(&mut own);
            self.send_control(number, ppp::IPV6CP, ppp::CONFIGURE_REQUEST, 1, &own);
        }
    }

    fn advertise(&self, number: u16) {
        let prefix = nd::PrefixInformation {
            prefix: prefix_of(number),
            length: 64,
            on_link: false,
            autonomous: true,
            valid_lifetime: 3600,
            preferred_lifetime: 3600,
        };
        let advertisement = nd::RouterAdvertisement {
            router_lifetime: 1800,
            options: vec![nd::Opt::Prefix(prefix)],
            ..Default::default()
        };
        let (source, destination) = (ipv6::link_local(INTERFACE_ID), ipv6::ALL_NODES);
        let message = nd::Message::RouterAdvertisement(advertisement);
        let mut frame = ppp::IPV6.to_be_bytes().to_vec();
        nd::Packet {
            source,
            destination,
            message,
        }
        .emit(&mut frame);
        self.send_ppp(number, &frame);
    }

    /// A packet that the kernel routed to the subscribers.
    fn downstream(&mut self, packet: &mut [u8]) {
        let (number, protocol) = match packet[0] >> 4 {
            4 => (u16::from_be_bytes([packet[18], packet[19]]) - 1, ppp::IPV4),
            _ => (u16::from_be_bytes([packet[30], packet[31]]), ppp::IPV6),
        };
        if !(1..=self.homes.len() as u16).contains(&number) {
            return;
        }
        self.count += 1;
        let fault = if self.count.is_multiple_of(10) {
            self.fault
        } else {
            Fault::None
        };
        let next = number % self.homes.len() as u16 + 1;
        if fault == Fault::Corrupt {
            // Two words that swap places leave the checksum as it is. Those of the label's own checksum are hardly ever the same.
            let end = packet.len();
            packet.swap(end - 2, end - 4);
            packet.swap(end - 1, end - 3);
        }
        let frame = [&protocol.to_be_bytes()[..], packet].concat();
        match fault {
            Fault::None | Fault::Corrupt => self.send_ppp(number, &frame),
            Fault::Lose => {}
            Fault::Repeat => (0..2).for_each(|_| self.send_ppp(number, &frame)),
            Fault::Misdeliver => self.send_ppp(next, &frame),
        }
    }
}
