//! What DPDK's tables find, and what the packet path out of them does to packets. EAL starts once in a process, so one test goes
//! through all of it.
#![cfg(feature = "peers")]
use dpdk::peers::*;
use dpdk::*;

#[test]
fn peers_find_what_is_in_them() {
    let options = EalOptions {
        memory_mib: 256,
        huge_pages: false,
    };
    let eal = Eal::start(&options).unwrap();
    allow_wide_vectors(&eal).unwrap();
    lists_find_the_first_rule(&eal);
    each_key_is_searched_in_its_list(&eal);
    meters_tell_colours(&eal);
    let pool = eal.pool("packets", 1023).unwrap();
    the_uplink_drops_and_marks(&eal, pool);
    the_downlink_encapsulates(&eal, pool);
    assert_eq!(pool.available(), 1023, "a packet was lost");
}

/// IPv4 to 192.0.2.`to`, port 80, TCP, with the first octet of its checksum's place free.
fn packet(to: u8) -> [u8; V4_KEY] {
    let mut ip = [
        0x45, 0, 0, 24, 0, 0, 0, 0, 64, 6, 0, 0, 100, 64, 0, 1, 192, 0, 2, to, 1, 0, 0, 80,
    ];
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn checksum(ip: &[u8]) -> u16 {
    let words = ip[..20].chunks(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn to_host(to: u8) -> AclRule {
    AclRule {
        destination: [0xc000_0200 | u32::from(to), 0, 0, 0],
        destination_length: 32,
        ..AclRule::ANY
    }
}

fn lists_find_the_first_rule(eal: &Eal) {
    let web = AclRule {
        destination_ports: [80, 81],
        protocol: 6,
        any_protocol: false,
        ..to_host(1)
    };
    let other = AclRule {
        source: [0x6440_0002, 0, 0, 0],
        source_length: 31,
        ..AclRule::ANY
    };
    let mut acl = AclV4::new(eal, "v4", &[web, other, to_host(1), to_host(2)]).unwrap();
    assert!(AclV4::new(eal, "v4", &[web]).is_err(), "the name is in use");
    let mut keys = [packet(1), packet(1), packet(2), packet(3), packet(2)];
    keys[1][9] = 17;
    keys[4][15] = 3;
    let mut v6 = [[0; V6_KEY]; 2];
    v6[0][8..10].copy_from_slice(&[0x20, 1]);
    v6[1][24..26].copy_from_slice(&[0x20, 1]);
    let from = AclRule {
        source: [0x2001_0000, 0, 0, 0],
        source_length: 48,
        ..AclRule::ANY
    };
    let mut acl6 = AclV6::new(eal, "v6", &[from, AclRule::ANY]).unwrap();
    let forms = AclForm::available(eal).unwrap();
    assert!(forms.contains(&AclForm::Scalar), "{forms:?}");
    for form in forms {
        let mut found = [9; BURST];
        acl.choose(form).unwrap();
        acl.find(&keys, &mut found);
        assert_eq!(found[..6], [1, 3, 4, 0, 2, 9], "{form:?}");
        acl6.choose(form).unwrap();
        acl6.find(&v6, &mut found);
        assert_eq!(found[..2], [1, 2], "{form:?}");
    }
    let long = AclRule {
        source_length: 33,
        ..web
    };
    assert!(AclV4::new(eal, "long", &[long]).is_err());
    drop(acl);
    AclV4::new(eal, "v4", &[web]).unwrap();
}

fn each_key_is_searched_in_its_list(eal: &Eal) {
    let list = |name, rules: &[AclRule]| AclV4::new(eal, name, rules).unwrap();
    let two = vec![
        list("first", &[to_host(1), to_host(2)]),
        list("second", &[to_host(2)]),
    ];
    let keys = [packet(1), packet(2), packet(2), packet(1), packet(2)];
    let mut lists = AclLists::new(two).unwrap();
    for form in AclForm::available(eal).unwrap() {
        lists.choose(form).unwrap();
        for calls in [AclCalls::Each, AclCalls::Parts] {
            let mut found = [9; BURST];
            lists.find(calls, &[0, 1, 0, 3, 1], &keys, &mut found);
            assert_eq!(found[..6], [1, 1, 2, 0, 1, 9], "{form:?} {calls:?}");
        }
    }
    let three = ["a", "b", "c"].map(|name| list(name, &[AclRule::ANY]));
    assert!(AclLists::new(three.into()).is_err());
}

fn two_rates(cbs: u64, pbs: u64) -> MeterRates {
    let (cir, pir) = (1000, 1000);
    MeterRates::TrTcm { cir, pir, cbs, pbs }
}

fn meters_tell_colours(eal: &Eal) {
    let single = MeterRates::SrTcm {
        cir: 1000,
        cbs: 100,
        ebs: 100,
    };
    for rates in [single, two_rates(100, 200)] {
        let mut meters = Meters::new(eal, 4, rates).unwrap();
        let mut colours = [GREEN; BURST];
        colours[3] = YELLOW;
        meters.colour(&[1, 1, 1, 2, 5, 2], &[100; 6], &mut colours, tsc());
        let expected = [GREEN, YELLOW, RED, YELLOW, RED, GREEN, GREEN];
        assert_eq!(colours[..7], expected, "{rates:?}");
    }
    assert!(Meters::new(eal, 5, single).is_err());
    assert!(Meters::new(eal, 0, single).is_err());
}

/// The access headers of a session of tags 5 and `inner`, and PPPoE session id 9.
fn access_header(inner: u8) -> [u8; ACCESS_HEADER] {
    let mut header = [0; ACCESS_HEADER];
    header[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    let rest = [
        0x88, 0xa8, 0, 5, 0x81, 0, 0, inner, 0x88, 0x64, 0x11, 0, 0, 9, 0, 0, 0, 0x21,
    ];
    header[12..].copy_from_slice(&rest);
    header
}

fn routes(eal: &Eal, name: &str, to: u32) -> Fib {
    let mut routes = Fib::new(eal, name, 16, 16).unwrap();
    routes.add(0xc000_0200, 24, to.into()).unwrap();
    routes
}

fn permit_all_but_3(eal: &Eal, name: &str) -> Filter {
    let rules = [(to_host(3), false), (AclRule::ANY, true)];
    Filter::new(eal, name, &rules, AclForm::Scalar).unwrap()
}

/// The packet after it was forwarded, with this type of service.
fn forwarded(to: u8, service: u8) -> [u8; V4_KEY] {
    let mut ip = packet(to);
    (ip[1], ip[8]) = (service, 63);
    ip[10..12].fill(0);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn the_uplink_drops_and_marks(eal: &Eal, pool: Pool) {
    let mut sessions = Hash::new(eal, "sessions", 16).unwrap();
    for inner in [6, 7] {
        sessions.add(session_key(5, inner, 9)).unwrap();
    }
    let mut uplink = Uplink::new(UplinkTables {
        filter: permit_all_but_3(eal, "up"),
        sessions,
        meters: Meters::new(eal, 4, two_rates(30, 60)).unwrap(),
        routes: routes(eal, "up", 1),
        neighbours: vec![[8; 6], [9; 6]],
        gateway: [7; 6],
    })
    .unwrap();
    let mut burst = Burst::new();
    let mut send = |inner, to| {
        let mut mbuf = pool.packet(&access_header(inner)).unwrap();
        assert!(mbuf.append(&packet(to)) && burst.push(mbuf).is_ok());
    };
    send(6, 1); // green
    send(6, 3); // denied
    send(8, 1); // nobody's
    send(6, 2); // yellow
    send(6, 1); // red
    send(7, 1); // green
    uplink.run(&mut burst);
    let expected = [(1, 10 << 2), (2, 12 << 2), (1, 10 << 2)];
    let found: Vec<_> = burst.frames().collect();
    assert_eq!(found.len(), expected.len());
    for (frame, (to, service)) in found.into_iter().zip(expected) {
        assert_eq!(frame[..14], [9, 9, 9, 9, 9, 9, 7, 7, 7, 7, 7, 7, 8, 0]);
        assert_eq!(frame[14..], forwarded(to, service));
    }
}

fn the_downlink_encapsulates(eal: &Eal, pool: Pool) {
    let headers = vec![access_header(6), access_header(7)];
    let filter = permit_all_but_3(eal, "down");
    let mut downlink = Downlink::new(filter, routes(eal, "down", 1), headers).unwrap();
    let mut burst = Burst::new();
    for to in [1, 3, 2] {
        let mut mbuf = pool.packet(&[0; 12]).unwrap();
        let is_written = mbuf.append(&[8, 0]) && mbuf.append(&packet(to));
        assert!(is_written && burst.push(mbuf).is_ok());
    }
    downlink.run(&mut burst);
    let mut header = access_header(7);
    header[27] = 26;
    let found: Vec<_> = burst.frames().collect();
    assert_eq!(found.len(), 2);
    for (frame, to) in found.into_iter().zip([1, 2]) {
        assert_eq!(frame[..ACCESS_HEADER], header);
        assert_eq!(frame[ACCESS_HEADER..], forwarded(to, 0));
    }
}
