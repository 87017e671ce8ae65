use super::*;
use std::sync::Arc;

const TEXT: &str = "network-instances: {default: {}}
subscriber-groups: {shared: {}}
user-planes:
  up1:
    address: 192.0.2.2
    management: /run/up1.sock
    ports:
      a: {role: access, device: a, segments: {east: {s-vlans: 100-199}, west: {s-vlans: 'untagged,200'}}}
      b: {role: access, device: b, subscriber-group: shared}
      c: {role: access, device: c, subscriber-group: shared}
      d: {role: core, device: d}
  up2:
    address: 2001:db8::2
    management: /run/up2.sock
    ports: {a: {role: access, device: a}}
";

fn configuration(text: &str) -> Configuration {
    Arc::unwrap_or_clone(config::check::read(text).unwrap().configuration)
}

fn topology() -> Topology {
    Topology::new(&configuration(TEXT), Numbers::new())
}

#[test]
fn groups_and_segments_follow_the_ports() {
    let t = topology();
    let names: Vec<&str> = t.groups().map(|(_, g)| g.name.as_str()).collect();
    assert_eq!(names, ["up1/a", "shared", "up2/a"]);
    assert_eq!(t.group(GroupId(1)).carrier, PortId(1));
    let macs = [0, 1].map(|n| t.group(GroupId(n)).virtual_mac);
    assert!(macs[0] != macs[1] && macs.iter().all(|m| !m.is_group()));
    let find = |up, port: &str, vid: Option<u16>| {
        let port = t.find_port(UserPlaneId(up), port.as_bytes())?;
        let segment = t.find_segment(port, &vid.map_or(Tags::NONE, Tags::single))?;
        Some((segment, t.port(port).group))
    };
    assert_eq!(find(0, "a", Some(150)), Some((SegmentId(0), GroupId(0))));
    assert_eq!(find(0, "a", None), Some((SegmentId(1), GroupId(0))));
    assert_eq!(find(0, "a", Some(300)), None);
    assert_eq!(find(0, "c", Some(300)), Some((SegmentId(3), GroupId(1))));
    assert_eq!(find(1, "a", Some(300)), Some((SegmentId(4), GroupId(2))));
    assert_eq!(find(1, "b", None), None);
    assert_eq!(find(0, "d", None), None, "no access port");
}

#[test]
fn numbers_stay_whatever_the_configuration_says_and_over_a_restart() {
    let mut t = topology();
    let before = t.numbers();
    let more = TEXT.replace(
        "    ports: {a:",
        "    ports: {'0': {role: access, device: z}, a:",
    );
    let more = more.replace("      b:", "      aa: {role: access, device: aa}\n      b:");
    t.update(&configuration(&more));
    let numbers = t.numbers();
    assert!(
        before
            .iter()
            .all(|(name, number)| numbers.get(name) == Some(number))
    );
    assert_eq!(numbers.len(), before.len() + 4);
    let again = Topology::new(&configuration(&more), numbers.clone());
    assert_eq!(again.numbers(), numbers);
    assert_ne!(
        Topology::new(&configuration(&more), Numbers::new()).numbers(),
        numbers
    );
    t.update(&configuration(TEXT));
    assert_eq!(t.numbers(), numbers, "they are retired");
    assert_eq!(t.ports().filter(|(_, port)| port.retired).count(), 2);
}

#[test]
fn a_group_keeps_its_carrier_as_long_as_it_is_there() {
    let mut t = topology();
    let more = TEXT.replace(
        "      b:",
        "      aa: {role: access, device: aa, subscriber-group: shared}\n      b:",
    );
    t.update(&configuration(&more));
    assert_eq!(t.group(GroupId(1)).carrier, PortId(1));
    let b = "      b: {role: access, device: b, subscriber-group: shared}\n";
    t.update(&configuration(&more.replace(b, "")));
    assert_ne!(t.group(GroupId(1)).carrier, PortId(1));
}

#[test]
fn identifiers_say_whose_they_are() {
    let seid = Seid::new(9, 77);
    assert_eq!((seid.generation(), seid.index()), (9, 77));
    assert_eq!(Seid::of_port(PortId(3)).generation(), 0);
    assert_eq!(Seid(0x1f).to_string(), "000000000000001f");
}
