//! What a packet costs: cycles of the time stamp counter in the worker's round, up and down, over ports in memory. The
//! machine's other load shows in the median; compare minima, and builds in turns (A B A B).
use dataplane::*;
use dpdk::{Eal, EalOptions, MemoryPeer, Pool, Port, tsc};
use std::error::Error;
use wire::eth::{Header, IPV4, MacAddr, PPPOE_SESSION, Tag, Tags};

const GATEWAY: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
const ROUTER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x77]);
const ACCESS: PortIndex = PortIndex(0);
const CORE: PortIndex = PortIndex(1);
const SESSIONS: u32 = 4096;
const BURST: u32 = 64;
const ROUNDS: u32 = 20_000;

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
    let (mut controller, mut worker) = data_plane(&eal, pool, access, core)?;
    for n in 0..SESSIONS {
        controller.set_session(entry(n))?;
        while worker.step() > 0 {}
    }
    let to = Adjacency {
        port: CORE,
        mac: ROUTER,
    };
    controller.set_adjacency(AdjacencyIndex(0), to)?;
    let everything = "0.0.0.0/0".parse()?;
    controller.set_route(
        InstanceIndex(0),
        everything,
        Destination::Adjacency(AdjacencyIndex(0)),
    )?;
    while worker.step() > 0 || !controller.catch_up() {}
    let up = measure(&mut worker, pool, &mut home, &mut router, up_frame);
    println!(
        "up    minimum {:5.1}  median {:5.1} cycles a packet",
        up.0, up.1
    );
    let down = measure(&mut worker, pool, &mut router, &mut home, down_frame);
    println!(
        "down  minimum {:5.1}  median {:5.1} cycles a packet",
        down.0, down.1
    );
    Ok(())
}

fn data_plane(
    eal: &Eal,
    pool: Pool,
    access: Port,
    core: Port,
) -> Result<(Controller, Worker), Box<dyn Error>> {
    let (mut controller, worker) = channel(eal, pool, Config::default())?;
    let segments = Segment::whole_port();
    let instance = InstanceIndex(0);
    for (index, port, role) in [
        (ACCESS, access, Role::Access { segments }),
        (CORE, core, Role::Core { instance }),
    ] {
        let mac = Some(GATEWAY);
        controller.add_port(index, PortConfig { port, mac, role })?;
    }
    Ok((controller, worker))
}

/// Sends bursts in at one port and takes them out at the other; minimum and median of the rounds' cycles a packet.
fn measure(
    worker: &mut Worker,
    pool: Pool,
    from: &mut MemoryPeer,
    to: &mut MemoryPeer,
    frame: fn(u32) -> Vec<u8>,
) -> (f64, f64) {
    let frames: Vec<_> = (0..SESSIONS).map(frame).collect();
    let mut next = 0;
    let mut rounds: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            for _ in 0..BURST {
                next = (next + 1_103) % SESSIONS;
                let mbuf = pool.packet(&frames[next as usize]).expect("a buffer");
                from.to_port.send(mbuf).expect("room");
            }
            let begin = tsc();
            worker.step();
            let took = tsc() - begin;
            let out = std::iter::from_fn(|| to.from_port.recv()).count();
            assert_eq!(out, BURST as usize);
            took
        })
        .collect();
    rounds.sort_unstable();
    let per_packet = |round: u64| round as f64 / BURST as f64;
    (per_packet(rounds[0]), per_packet(rounds[rounds.len() / 2]))
}

fn mac(n: u32) -> MacAddr {
    let [_, b, c, d] = n.to_be_bytes();
    MacAddr([2, 0, 1, b, c, d])
}

fn tags() -> Tags {
    Tags {
        outer: Some(Tag::new(100)),
        inner: Some(Tag::new(7)),
    }
}

fn address(n: u32) -> u32 {
    0x6440_0001 + n
}

fn entry(n: u32) -> SessionEntry {
    SessionEntry {
        index: SessionIndex(n),
        port: ACCESS,
        tags: tags(),
        peer_mac: mac(n),
        gateway_mac: GATEWAY,
        pppoe_session_id: n as u16 + 1,
        instance: InstanceIndex(0),
        mtu: 1492,
        subscriber: n.into(),
        ipv4: Some(address(n).into()),
        ipv6: None,
    }
}

fn packet(source: u32, destination: u32) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0];
    p.extend(source.to_be_bytes());
    p.extend(destination.to_be_bytes());
    let sum = wire::checksum::of(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.resize(100, 7);
    p
}

fn up_frame(n: u32) -> Vec<u8> {
    let mut frame = vec![];
    let header = Header {
        destination: GATEWAY,
        source: mac(n),
        tags: tags(),
        ethertype: PPPOE_SESSION,
    };
    header.emit(&mut frame);
    frame.extend([0x11, 0]);
    frame.extend((n as u16 + 1).to_be_bytes());
    frame.extend(102u16.to_be_bytes());
    frame.extend([0x00, 0x21]);
    frame.extend(packet(address(n), 0xc000_0207));
    frame
}

fn down_frame(n: u32) -> Vec<u8> {
    let mut frame = vec![];
    let header = Header {
        destination: GATEWAY,
        source: ROUTER,
        tags: Tags::NONE,
        ethertype: IPV4,
    };
    header.emit(&mut frame);
    frame.extend(packet(0xc000_0207, address(n)));
    frame
}
