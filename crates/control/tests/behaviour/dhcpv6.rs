//! DHCPv6: what homes are told of what their sessions have.

use crate::world::{Choice, World};
use core::net::Ipv6Addr;
use core::time::Duration;
use cpe::{Delegation, Home, HomeConfig};
use wire::eth::Frame;
use wire::radius::{Kind, Value};
use wire::{dhcpv6, ipv6, ppp, pppoe, udp};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A world whose homes ask for leases, with pools for them.
fn world(homes: usize, choice: Choice) -> World {
    let mut w = World::new(homes, choice);
    w.configure(&[
        "set ipv6-pools lans prefix 2001:db8:4000::/36",
        "set ipv6-pools lans prefix-length 56",
        "set ipv6-pools routers prefix 2001:db8:5000::/64",
        "set ipv6-pools routers prefix-length 128",
        "set subscriber-profiles home delegated-pools lans",
        "set subscriber-profiles home ipv6-address-pools routers",
    ])
    .unwrap();
    for (n, home) in w.homes.iter_mut().enumerate() {
        let config = HomeConfig {
            delegation: Some(Delegation {
                rapid_commit: n % 2 == 0,
            }),
            ..home.config().clone()
        };
        *home = Home::new(config, n as u64);
    }
    w
}

fn delegated(w: &World, home: usize) -> Vec<String> {
    let nets = w.homes[home].delegated().iter();
    nets.map(ToString::to_string).collect()
}

#[test]
fn homes_get_what_their_sessions_have() {
    let mut w = world(2, Choice::default());
    w.dial(0);
    w.run(MINUTE);
    w.dial(1);
    w.run(MINUTE);
    assert_eq!(delegated(&w, 0), ["2001:db8:4000::/56"]);
    assert_eq!(delegated(&w, 1), ["2001:db8:4000:100::/56"]);
    let address = |home: usize| w.homes[home].leased_address().map(|a| a.to_string());
    assert_eq!(
        [address(0), address(1)],
        ["2001:db8:5000::", "2001:db8:5000::1"].map(|a| Some(a.to_owned()))
    );
}

#[test]
fn leases_are_renewed_over_restarts_of_both_planes() {
    let mut w = world(1, Choice::default());
    w.dial(0);
    w.run(MINUTE);
    let had = delegated(&w, 0);
    w.restart_control_plane();
    w.run(3 * HOUR); // T1 has passed
    assert_eq!(delegated(&w, 0), had);
    w.restart_user_plane();
    w.run(48 * HOUR); // so has the valid lifetime
    assert_eq!((w.online(), delegated(&w, 0)), (1, had));
}

#[test]
fn changed_name_servers_are_told_by_reconfigure() {
    let mut w = world(1, Choice::default());
    w.dial(0);
    w.run(MINUTE);
    w.heard.clear();
    w.configure(&["set subscriber-profiles home dns 2001:db8::99"])
        .unwrap();
    w.run(MINUTE);
    let server: Ipv6Addr = "2001:db8::99".parse().unwrap();
    let told: Vec<bool> = w
        .heard
        .iter()
        .filter_map(|frame| name_servers(frame))
        .map(|servers| servers.contains(&server))
        .collect();
    assert_eq!(told, [true], "one Renew, and its Reply");
}

/// Name servers in a message of DHCPv6 to a home.
fn name_servers(frame: &[u8]) -> Option<Vec<Ipv6Addr>> {
    let frame = Frame::parse(frame).ok()?;
    let packet = pppoe::Packet::parse(frame.payload).ok()?;
    let ppp = ppp::Frame::parse(packet.payload).ok()?;
    let packet = ipv6::Packet::parse(ppp.payload).ok()?;
    let datagram = udp::Datagram::parse(packet.payload).ok()?;
    let message = dhcpv6::Message::parse(datagram.payload).ok()?;
    message.options.into_iter().find_map(|option| match option {
        dhcpv6::Opt::DnsServers(servers) => Some(servers),
        _ => None,
    })
}

#[test]
fn prefixes_of_radius_are_told_in_one_association() {
    let mut w = world(1, Choice::radius());
    let prefix = |text: &str| Value::Ipv6Prefix(text.parse().unwrap());
    w.radius.accept = vec![
        (Kind::DELEGATED_IPV6_PREFIX, prefix("2001:db8:9900::/48")),
        (Kind::DELEGATED_IPV6_PREFIX, prefix("2001:db8:9a00::/56")),
    ];
    w.dial(0);
    w.run(MINUTE);
    assert_eq!(
        delegated(&w, 0),
        ["2001:db8:9900::/48", "2001:db8:9a00::/56"]
    );
}
