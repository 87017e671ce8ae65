//! A gateway with one subscriber and one neighbour, both fixed: to try ports with. Arguments: the access port's and the
//! core port's devargs, and how many seconds to run.
use dataplane::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use wire::eth::{MacAddr, Tag, Tags};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, access, core, seconds] = &args[..] else {
        return Err("static ACCESS CORE SECONDS".into());
    };
    let begin = std::time::Instant::now();
    let eal = dpdk::Eal::start(&dpdk::EalOptions::default())?;
    let pool = eal.pool("packets", 16383)?;
    let open = |devargs: &str, role| -> Result<PortConfig, dpdk::Error> {
        let port = eal.open_port(devargs, pool, &dpdk::PortOptions::default())?;
        Ok(PortConfig {
            port,
            mac: None,
            role,
        })
    };
    let segments = Segment::whole_port();
    let access = open(access, Role::Access { segments })?;
    let core = open(
        core,
        Role::Core {
            instance: InstanceIndex(0),
        },
    )?;
    println!("open after {:?}", begin.elapsed());
    let gateway_mac = MacAddr(access.port.mac());
    let (mut controller, workers) = channel(&eal, pool, Config::default())?;
    controller.add_port(PortIndex(0), access)?;
    controller.add_port(PortIndex(1), core)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let run = move |worker: Worker| {
        let flag = flag.clone();
        std::thread::spawn(move || worker.run(&flag))
    };
    let threads: Vec<_> = workers.into_iter().map(run).collect();

    let outer = Tag {
        tpid: 0x88a8,
        ..Tag::new(100)
    };
    controller.set_session(SessionEntry {
        index: SessionIndex(0),
        port: PortIndex(0),
        tags: Tags {
            outer: Some(outer),
            inner: Some(Tag::new(7)),
        },
        peer_mac: "02:00:00:00:00:09".parse()?,
        gateway_mac,
        pppoe_session_id: 5,
        instance: InstanceIndex(0),
        packets: PacketSettings::with_mtu(1492),
        policies: Default::default(),
        subscriber: 1,
        ipv4: Some("100.64.0.7".parse()?),
        ipv6: None,
        routed: Box::default(),
    })?;
    let neighbour = Adjacency {
        port: PortIndex(1),
        mac: Some("02:00:00:00:00:77".parse()?),
    };
    controller.set_adjacency(AdjacencyIndex(0), neighbour)?;
    controller.set_route(
        InstanceIndex(0),
        "0.0.0.0/0".parse()?,
        Destination::Adjacency(AdjacencyIndex(0)),
    )?;
    while !controller.catch_up() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_secs(seconds.parse()?));
    controller.recv_punts(usize::MAX, |p| {
        println!("{:?} from {:?}: {} bytes", p.kind, p.port, p.frame.len())
    });
    println!("{:#?}", controller.ports());
    for drop in controller.drops().iter().filter(|d| d.packets > 0) {
        println!("{} {}", drop.reason.name(), drop.packets);
    }
    stop.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("the worker ends");
    }
    Ok(())
}
