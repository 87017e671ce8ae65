//! Capture in, capture out, and what the counters say.
use crate::cases::homes;
use crate::frames::{self, GATEWAY, v4, v6};
use crate::model::{Fate, Model};
use crate::world::*;
use dataplane::*;
use wire::eth::MacAddr;

const HEADER: [u8; 24] = [
    0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0,
];

fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    for frame in frames {
        file.extend([0; 8]);
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend(frame);
    }
    file
}

fn frames_of(file: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut frames) = (&file[24..], vec![]);
    while let Some(header) = rest.get(..16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

#[test]
fn a_capture_goes_in_and_a_capture_comes_out() {
    let homes = homes();
    let model = Model::new(&homes);
    let home = &homes[2];
    let upstream = [
        home.sends_ip(&v4(home.v4, [192, 0, 2, 7], 64, 0, b"one")),
        home.sends_ip(&v4([10, 0, 0, 1], [192, 0, 2, 7], 64, 0, b"forged")),
        home.sends_ip(&v6(home.v6_address(), [0x26; 16], 64, 17, b"two")),
        home.discovers([0xff; 6], 9, 0),
    ];
    let downstream = [
        frames::frame(
            GATEWAY,
            ROUTER,
            &v4([192, 0, 2, 7], home.v4, 64, 0, b"three"),
        ),
        frames::frame(
            GATEWAY,
            ROUTER,
            &v6([0x26; 16], home.v6_address(), 1, 17, b"expires"),
        ),
    ];
    let out = |port, frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let fates = frames.iter().map(|f| model.fate(port, f));
        fates
            .filter_map(|fate| {
                if let Fate::Out(_, frame) = fate {
                    Some(frame)
                } else {
                    None
                }
            })
            .collect()
    };
    let (to_core, to_access) = (out(ACCESS, &upstream), out(CORE, &downstream));
    assert_eq!((to_core.len(), to_access.len()), (2, 1));

    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(file("access.in"), capture(&upstream)).unwrap();
    std::fs::write(file("core.in"), capture(&downstream)).unwrap();
    let controller = with_ports(|eal, pool| {
        let open = |name: &str, part: &str, role| {
            let devargs = format!(
                "{name},rx_pcap={},tx_pcap={}",
                file(&format!("{part}.in")),
                file(&format!("{part}.out"))
            );
            let port = eal
                .open_port(&devargs, pool, &dpdk::PortOptions::default())
                .unwrap();
            PortConfig {
                port,
                mac: Some(MacAddr(GATEWAY)),
                role,
            }
        };
        let segments = Segment::whole_port();
        let access = open("net_pcap0", "access", Role::Access { segments });
        let core = open(
            "net_pcap1",
            "core",
            Role::Core {
                instance: InstanceIndex(0),
            },
        );
        let (mut c, mut worker) = channel(eal, pool, Config::default()).unwrap();
        c.add_port(PortIndex(ACCESS), access).unwrap();
        c.add_port(PortIndex(CORE), core).unwrap();
        let router = Adjacency {
            port: PortIndex(CORE),
            mac: MacAddr(ROUTER),
        };
        c.set_adjacency(AdjacencyIndex(0), router).unwrap();
        for prefix in ["0.0.0.0/0", "2000::/3"] {
            let to = Destination::Adjacency(AdjacencyIndex(0));
            c.set_route(InstanceIndex(0), prefix.parse().unwrap(), to)
                .unwrap();
        }
        c.set_session(World::entry(home)).unwrap();
        while worker.step() > 0 {}
        c.recv_punts(10, |_| ());
        c
    });
    assert_eq!(
        frames_of(&std::fs::read(file("core.out")).unwrap()),
        to_core
    );
    assert_eq!(
        frames_of(&std::fs::read(file("access.out")).unwrap()),
        to_access
    );
    let drops = controller.drops().into_iter().filter(|d| d.packets > 0);
    let drops: Vec<_> = drops.map(|d| (d.reason.name(), d.packets)).collect();
    assert_eq!(drops, [("spoofed-source-v4", 1), ("ttl-expired", 1)]);
    let [access, core] = &controller.ports()[..] else {
        panic!("two ports")
    };
    assert_eq!(
        (
            access.rx_packets,
            access.tx_packets,
            core.rx_packets,
            core.tx_packets
        ),
        (4, 1, 2, 2)
    );
    let octets = |frames: &[Vec<u8>]| frames.iter().map(|f| f.len() as u64).sum::<u64>();
    assert_eq!(
        (access.rx_octets, core.tx_octets),
        (octets(&upstream), octets(&to_core))
    );
}
