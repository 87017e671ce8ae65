//! How many sessions come, change and go in a second while packets are forwarded: the control thread's work and the worker's,
//! and the packets', on one core.
use dataplane::*;
use dpdk::{Eal, EalOptions};
use std::error::Error;
use std::time::Instant;
use wire::eth::{Header, IPV4, MacAddr, Tags};

const GATEWAY: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
const SESSIONS: u32 = 131_072;
const CHANGES: u32 = 1_000_000;
const BURST: u32 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let options = EalOptions {
        memory_mib: 64,
        huge_pages: false,
    };
    let eal = Eal::start(&options)?;
    let _registered = eal.register_thread()?;
    let pool = eal.pool("packets", 8191)?;
    let (access, mut home) = eal.memory_port("access", 256, pool)?;
    let (core, mut router) = eal.memory_port("core", 256, pool)?;
    let limits = Limits {
        sessions: 1 << 20,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    let (mut controller, mut worker) = channel(&eal, pool, config)?;
    let segment = |id: u16| Segment {
        id,
        vlans: vec![id..=id],
    };
    let segments = (0..4).map(segment).collect();
    let mac = Some(GATEWAY);
    let role = Role::Access { segments };
    let port = access;
    controller.add_port(PortIndex(0), PortConfig { port, mac, role })?;
    let instance = InstanceIndex(0);
    let (port, role) = (core, Role::Core { instance });
    controller.add_port(PortIndex(1), PortConfig { port, mac, role })?;

    // The last of them stays, and gets packets all the time.
    let packet = packet(SESSIONS);
    let (mut changes, mut sent, mut got) = (0, 0, 0);
    controller.set_session(entry(SESSIONS, 0))?;
    while worker.step() > 0 {}
    let begin = Instant::now();
    let mut round = 0;
    while changes < CHANGES {
        let (step, n) = (changes / SESSIONS % 3, changes % SESSIONS);
        let done = match step {
            0 | 1 => controller.set_session(entry(n, step)),
            _ => controller.remove_session(SessionIndex(n)),
        };
        changes += u32::from(done.is_ok());
        if done.is_ok() && changes % 32 != 0 {
            continue;
        }
        for _ in 0..BURST {
            let mbuf = pool.packet(&packet).ok_or("a buffer")?;
            router.to_port.send(mbuf).map_err(|_| "room")?;
            sent += 1;
        }
        worker.step();
        got += std::iter::from_fn(|| home.from_port.recv()).count();
        while let Some(event) = controller.poll_event() {
            if !matches!(event, Event::Usage { removed: true, .. }) {
                return Err(format!("{event:?}").into());
            }
        }
        round += 1;
    }
    let took = begin.elapsed();
    let rate = f64::from(changes) / took.as_secs_f64();
    println!(
        "{changes} changes in {took:?}: {rate:.0} a second; {sent} packets sent, {got} received in {round} rounds"
    );
    println!("{:?}", controller.routes());
    Ok(())
}

fn address(n: u32) -> u32 {
    0x6440_0000 + n
}

fn entry(n: u32, step: u32) -> SessionEntry {
    let [_, b, c, d] = n.to_be_bytes();
    let prefix = 0x2001_0db8_0000_0000 + u64::from(n);
    SessionEntry {
        index: SessionIndex(n),
        port: PortIndex(0),
        tags: Tags::single((n / 60_000) as u16),
        peer_mac: MacAddr([2, 0, 1, b, c, d]),
        gateway_mac: GATEWAY,
        pppoe_session_id: (n % 60_000) as u16 + 1,
        instance: InstanceIndex(0),
        mtu: 1492 - step as u16,
        subscriber: n.into(),
        ipv4: Some(address(n).into()),
        ipv6: Some(ipnet::Ipv6Net::new((u128::from(prefix) << 64).into(), 64).expect("a length")),
    }
}

fn packet(n: u32) -> Vec<u8> {
    let mut frame = vec![];
    let header = Header {
        destination: GATEWAY,
        source: MacAddr([2, 0, 0, 0, 0, 0x77]),
        tags: Tags::NONE,
        ethertype: IPV4,
    };
    header.emit(&mut frame);
    let mut p = vec![0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 7];
    p.extend(address(n).to_be_bytes());
    let sum = wire::checksum::of(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.resize(100, 7);
    frame.extend(p);
    frame
}
