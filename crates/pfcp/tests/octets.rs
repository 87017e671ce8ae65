//! The rules of a session and of a default session as they go over the wire, written by hand from TS 29.244 and TR-459: which
//! way each rule looks, whose address and tunnel is where. Both planes use one codec and one table of rules, so a
//! mistake in them would be made alike on both sides.

use core::net::IpAddr;
use core::time::Duration;
use pfcp::bng::{Circuit, DefaultSpec, Family, PoolNet, SessionSpec, Tunnel};
use policy::{Access, Binding, Bindings, Forwarding, PacketSettings, Role, Treatment};
use wire::eth::{MacAddr, TPID_8021AD, Tag, Tags};
use wire::pfcp::{FSeid, Message, NodeId, Packet};

const CP: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
const UP: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 2));

/// Puts elements together: in each line a type (`3561:` in front of the BBF's, `32473:` of our own) and its octets, or further
/// lines that are indented more. Lengths follow from that.
fn assemble(text: &str) -> Vec<u8> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap());
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    group(&lines)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn group(mut lines: &[&str]) -> Vec<u8> {
    let mut octets = Vec::new();
    while let Some((first, rest)) = lines.split_first() {
        let own = indent(first);
        let inner = rest.iter().take_while(|line| indent(line) > own).count();
        let (kind, payload) = first.trim().split_once(' ').unwrap_or((first.trim(), ""));
        let (vendor, kind) = match kind.split_once(':') {
            Some((vendor, kind)) => (vendor.parse::<u16>().unwrap().to_be_bytes().to_vec(), kind),
            None => (vec![], kind),
        };
        let payload = [vendor, hex(payload), group(&rest[..inner])].concat();
        octets.extend(kind.parse::<u16>().unwrap().to_be_bytes());
        octets.extend((payload.len() as u16).to_be_bytes());
        octets.extend(payload);
        lines = &rest[inner..];
    }
    octets
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// The elements of a message, in hexadecimal with a line for each four octets, so that a difference is seen.
fn lines(octets: &[u8]) -> Vec<String> {
    let lines = octets.chunks(4);
    lines.map(|line| format!("{line:02x?}")).collect()
}

fn assert_body(message: impl Into<Message>, expected: &str) {
    let mut octets = Vec::new();
    Packet::session(1, 1, message).emit(&mut octets).unwrap();
    assert_eq!(lines(&octets[16..]), lines(&assemble(expected)));
}

fn spec() -> SessionSpec {
    let outer = Tag {
        tpid: TPID_8021AD,
        ..Tag::new(0x123)
    };
    SessionSpec {
        node_id: NodeId::from(CP),
        cp_f_seid: FSeid::new(0xc0, CP),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags {
                outer: Some(outer),
                inner: Some(Tag::new(0xabc)),
            },
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            gateway_mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
        },
        access: Access::Pppoe(0x1001),
        subscriber: Some(77),
        uplink: Tunnel {
            teid: 0x10,
            address: CP,
        },
        downlink: Tunnel {
            teid: 0x20,
            address: UP,
        },
        forwarding: Forwarding::new(
            Bindings::of(
                Some([100, 64, 0, 2].into()),
                Some("2001:db8:0:1::/64".parse().unwrap()),
            ),
            Treatment {
                network_instance: "vpn1".to_owned(),
                packets: PacketSettings::with_mtu(1492),
                ..Default::default()
            },
        ),
        urr_id: 1,
        usage_period: Some(300),
        echo_magic: None,
    }
}

/// Who asks, and for which session of its own.
const HEAD: &str = "
60 00 c0000201                          # Node ID: IPv4
57 02 00000000000000c0 c0000201         # F-SEID: V4";

/// PDR 1: discovery and PPP control of the circuit. PDR 2: what comes from the control plane's tunnel.
const CONTROL_PDRS: &str = "
1                                       # Create PDR
 56 0001                                # PDR ID
 29 00000064                            # Precedence
 2                                      # PDI
  20 00                                 # Source Interface: Access
  131 01                                # Traffic Endpoint ID: the circuit
  132                                   # Ethernet Packet Filter
   136 8863                             # Ethertype
  3561:32773 04                         # PPP Protocol: control
 108 00000001                           # FAR ID
1
 56 0002
 29 00000064
 2
  20 03                                 # Source Interface: CP-function
  131 04                                # the tunnel
 95 06                                  # Outer Header Removal: GTP-U/UDP/IP
 108 00000002";

/// PDR 3 from the subscriber, PDR 4 to it.
const IPV4_PDRS: &str = "
1
 56 0003
 29 000000c8
 2
  20 00                                 # Access
  131 02                                # with the subscriber's address
  3561:32773 01 0021                    # PPP Protocol: IPv4
 3561:32771 03                          # BBF Outer Header Removal: PPP, PPPoE and Ethernet
 108 00000003
 81 00000001                            # URR ID
 109 00000001                           # QER ID
1
 56 0004
 29 000000c8
 2
  20 01                                 # Core
  131 03
 108 00000004
 81 00000001
 109 00000001";

/// PDR 5 comes first: neighbour discovery and DHCPv6 go to the control plane. PDR 6 from the subscriber, PDR 7 to it.
const IPV6_PDRS: &str = "
1
 56 0005
 29 00000032
 2
  20 00
  131 01
  23 0100 0034 7065726d6974206f75742035382066726f6d20616e7920746f2061737369676e65642069636d707479706573203133332d313337
  23 0100 0026 7065726d6974206f75742031372066726f6d20616e792035343720746f2061737369676e6564
  3561:32773 01 0057                    # PPP Protocol: IPv6
 108 00000001                           # to the control plane
1
 56 0006
 29 000000c8
 2
  20 00
  131 05
  3561:32773 01 0057
 3561:32771 03
 108 00000006
 81 00000001
 109 00000001
1
 56 0007
 29 000000c8
 2
  20 01
  131 06
 108 00000007
 81 00000001
 109 00000001";

const CONTROL_FARS: &str = "
3                                       # Create FAR
 108 00000001
 44 02                                  # Apply Action: FORW
 4                                      # Forwarding Parameters
  42 03                                 # Destination Interface: CP-function
  84 0100 00000010 c0000201             # Outer Header Creation: GTP-U/UDP/IPv4, the control plane's TEID and address
3
 108 00000002
 44 02
 4
  42 00                                 # Access";

const IPV4_FARS: &str = "
3
 108 00000003
 44 02
 4
  42 01                                 # Core
  22 76706e31                           # Network Instance
3
 108 00000004
 44 02
 4
  42 00                                 # Access
  131 02                                # Linked Traffic Endpoint ID
  3561:32770 0200 0000 0000             # BBF Outer Header Creation: traffic endpoint
  3561:32776 05d4                       # MTU";

const IPV6_FARS: &str = "
3
 108 00000006
 44 02
 4
  42 01
  22 76706e31
3
 108 00000007
 44 02
 4
  42 00
  131 05
  3561:32770 0200 0000 0000
  3561:32776 05d4";

const USAGE_AND_QOS: &str = "
6                                       # Create URR
 81 00000001
 62 03                                  # Measurement Method: duration and volume
 37 0100                                # Reporting Triggers: PERIO
 64 0000012c                            # Measurement Period
 100 10                                 # Measurement Information: MNOP
7                                       # Create QER
 109 00000001
 28 0000004d                            # QER Correlation ID: the subscriber
 25 00                                  # Gate Status: both open";

/// The circuit, in the order of the element's table.
const CIRCUIT: &str = "
 3561:32769 61636365737330              # Logical Port
 3561:32772 1001                        # PPPoE Session ID
 133 03 020000000001 0200000000fe       # MAC address: the subscriber's is the source, the gateway's the destination
 135 04 10 23                           # S-TAG: VID 0x123
 134 04 a0 bc                           # C-TAG: VID 0xabc
 32473:32770 88a8                       # our own: the outer tag's TPID";

fn endpoint(id: &str, inner: &str) -> String {
    format!("\n127\n 131 {id}{inner}") // Create Traffic Endpoint
}

fn control_endpoints() -> String {
    let tunnel = "
 21 01 00000020 c0000202                # F-TEID: the user plane's";
    endpoint("01", CIRCUIT) + &endpoint("04", tunnel)
}

/// The endpoints of a family on the access side and on the core side.
fn endpoints(ids: [&str; 2], addresses: &str) -> String {
    let with_addresses = format!("\n 22 76706e31{addresses}");
    endpoint(ids[0], &(with_addresses.clone() + CIRCUIT)) + &endpoint(ids[1], &with_addresses)
}

fn ipv4_endpoints() -> String {
    let address = "
 93 02 64400002                         # UE IP Address: V4";
    endpoints(["02", "03"], address)
}

fn ipv6_endpoints() -> String {
    let address = "
 93 01 20010db8000000010000000000000000 # V6, of 64 bits";
    endpoints(["05", "06"], address)
}

const PDN_TYPE: &str = "
113 05                                  # PDN Type: Ethernet";

#[test]
fn a_session_begins_with_its_control_packets() {
    let expected = [
        HEAD,
        CONTROL_PDRS,
        CONTROL_FARS,
        USAGE_AND_QOS,
        &control_endpoints(),
        PDN_TYPE,
    ];
    assert_body(spec().establish_control(), &expected.concat());
}

#[test]
fn each_family_is_added_with_two_ways() {
    let ipv4 = spec().add_family(Family::Ipv4).unwrap();
    assert_body(ipv4, &[IPV4_PDRS, IPV4_FARS, &ipv4_endpoints()].concat());
    let ipv6 = spec().add_family(Family::Ipv6).unwrap();
    assert_body(ipv6, &[IPV6_PDRS, IPV6_FARS, &ipv6_endpoints()].concat());
}

#[test]
fn a_session_is_put_back_whole() {
    let expected = [
        HEAD,
        CONTROL_PDRS,
        IPV4_PDRS,
        IPV6_PDRS,
        CONTROL_FARS,
        IPV4_FARS,
        IPV6_FARS,
        USAGE_AND_QOS,
        &control_endpoints(),
        &ipv4_endpoints(),
        &ipv6_endpoints(),
        PDN_TYPE,
    ];
    assert_body(spec().establish(), &expected.concat());
}

#[test]
fn a_family_goes_with_all_that_it_had() {
    let ipv6 = "
15
 56 0005                                # Remove PDR
15
 56 0006
15
 56 0007
16
 108 00000006                           # Remove FAR
16
 108 00000007
130
 131 05                                 # Remove Traffic Endpoint
130
 131 06";
    assert_body(spec().remove_family(Family::Ipv6), ipv6);
}

#[test]
fn the_mtu_is_that_of_the_way_to_the_subscriber() {
    let mut smaller = spec();
    smaller.forwarding.packets.mtu = Some(1400);
    let change = "
10                                      # Update FAR
 108 00000004
 11                                     # Update Forwarding Parameters
  3561:32776 0578
10
 108 00000007
 11
  3561:32776 0578";
    assert_body(smaller.change_from(&spec().told()).unwrap(), change);
}

#[test]
fn settings_without_an_element_travel_by_number() {
    let mut told = spec();
    told.forwarding.packets.vlan_priority = 5;
    told.forwarding.packets.idle_timeout = Some(Duration::from_secs(300));
    told.forwarding.packets.idle_both_ways = true;
    // our own element, of number, length and value: VLAN priority 5; an idle time-out of 300 s (in LEB128) and 0 ns; in both
    // directions
    let settings = "
  32473:32773 05 01 05  06 04 01 ac02 00  07 01 01";
    let change = |far: &str| format!("\n10\n 108 {far}\n 11{settings}"); // Update FAR, Update Forwarding Parameters
    let changes = change("00000004") + &change("00000007");
    assert_body(told.change_from(&spec().told()).unwrap(), &changes);
    // the last element of the last FAR, which leads to the subscriber
    let ipv4 = [IPV4_PDRS, IPV4_FARS, settings, &ipv4_endpoints()].concat();
    assert_body(told.add_family(Family::Ipv4).unwrap(), &ipv4);
}

#[test]
fn prefixes_and_routes_of_the_subscriber_are_at_its_endpoints() {
    let mut with_all = spec();
    let delegated = Binding::new(Role::Delegated, "2001:db8:7::/56".parse().unwrap());
    let route = Binding::new(Role::Route, "203.0.113.0/24".parse().unwrap());
    let route6 = Binding::new(Role::Route, "2001:db8:9::/48".parse().unwrap());
    for binding in [delegated, route, route6] {
        let bindings = &mut with_all.forwarding.bindings;
        *bindings = bindings.with(binding).unwrap();
    }
    let ipv4 = "
 93 02 64400002                         # UE IP Address
 153 3230332e302e3131332e302f3234       # Framed-Route: 203.0.113.0/24";
    let ipv4 = [IPV4_PDRS, IPV4_FARS, &endpoints(["02", "03"], ipv4)].concat();
    assert_body(with_all.add_family(Family::Ipv4).unwrap(), &ipv4);
    let ipv6 = "
 93 01 20010db8000000010000000000000000
 93 09 20010db8000700000000000000000000 08  # V6 and IPv6D: 8 bits less than 64
 155 323030313a6462383a393a3a2f3438     # Framed-IPv6-Route: 2001:db8:9::/48";
    let ipv6 = [IPV6_PDRS, IPV6_FARS, &endpoints(["05", "06"], ipv6)].concat();
    assert_body(with_all.add_family(Family::Ipv6).unwrap(), &ipv6);
}

#[test]
fn the_subscriber_is_the_correlation_id_of_the_qer() {
    let known = SessionSpec {
        subscriber: Some(78),
        ..spec()
    };
    let change = "
14                                      # Update QER
 109 00000001
 28 0000004e                            # QER Correlation ID";
    assert_body(known.change_from(&spec().told()).unwrap(), change);
}

#[test]
fn a_default_session_has_both_ways_and_announces_nets() {
    let spec = DefaultSpec {
        node_id: NodeId::from(CP),
        cp_f_seid: FSeid::new(0xc0, CP),
        logical_port: Some(b"access0".to_vec()),
        uplink: Tunnel {
            teid: 1,
            address: CP,
        },
        downlink: Some(Tunnel {
            teid: 2,
            address: UP,
        }),
        nets: ["100.64.0.0/24", "2001:db8::/56"]
            .iter()
            .zip(0..)
            .map(|(net, slot)| PoolNet {
                slot,
                network_instance: "vpn1".to_owned(),
                net: net.parse().unwrap(),
            })
            .collect(),
    };
    let expected = "
1
 56 0001
 29 00000064
 2
  20 00
  132
   136 8863
  3561:32769 61636365737330
 108 00000001
1
 56 0002
 29 00000064
 2
  20 03
  131 04
 95 06
 108 00000002
1
 56 1000                                # the first net
 29 ffffffff
 2
  20 01                                 # Core
  22 76706e31
  153 3130302e36342e302e302f3234        # Framed-Route 100.64.0.0/24
 108 00000003
1
 56 1001
 29 ffffffff
 2
  20 01
  22 76706e31
  155 323030313a6462383a3a2f3536        # Framed-IPv6-Route 2001:db8::/56
 108 00000003
3
 108 00000001
 44 02
 4
  42 03
  84 0100 00000001 c0000201
  3561:32770 0100 0000 0000             # BBF Outer Header Creation: CPR-NSH
3
 108 00000003
 44 01                                  # DROP: what no subscriber's session takes
3
 108 00000002
 44 02
 4
  42 00
127
 131 04
 21 01 00000002 c0000202";
    assert_body(spec.establish().0, &[HEAD, expected].concat());
}
