//! Change of authorization and disconnection by RADIUS servers (RFC 5176): what is acknowledged is in force at the user plane and in the
//! store; what is rejected has changed nothing.

use crate::world::radius::route;
use crate::world::{Choice, World};
use control::history::{Step, What, events};
use core::time::Duration;
use policy::{PacketSettings, Rate, Role};
use wire::pfcp::SluiceFeatures;
use wire::radius::{Code, Kind, Missing, Packet, Value, verify_response};

const SECOND: Duration = Duration::from_secs(1);
const SECRET: &[u8] = b"coa-secret";

/// A world in which a RADIUS server may change sessions.
pub fn world(homes: usize) -> World {
    world_of(homes, Choice::radius())
}

fn world_of(homes: usize, choice: Choice) -> World {
    let mut w = World::new(homes, choice);
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
        "set subscriber-profiles gold rate-down 100000",
        "set subscriber-profiles gold vlan-priority 5",
        "set subscriber-profiles gold dns 192.0.2.53",
        "set subscriber-profiles gold dns 2001:db8::53",
        "set network-instances red gateway 10.1.0.1",
        "set subscriber-profiles walled network-instance red",
    ])
    .unwrap();
    assert_eq!(w.dynamic_port, Some(3799));
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

pub fn user(n: usize) -> (Kind, Value) {
    (Kind::USER_NAME, Value::Octets(format!("home{n}").into()))
}

pub fn gold() -> (Kind, Value) {
    (Kind::FILTER_ID, "gold".into())
}

pub fn mtu(octets: u32) -> (Kind, Value) {
    (Kind::FRAMED_MTU, octets.into())
}

/// A request, with an identifier of its own.
pub fn request(code: Code, identifier: u8, attributes: &[(Kind, Value)]) -> Vec<u8> {
    let mut packet = Packet::new(code, identifier, [0; 16]);
    for (kind, value) in attributes {
        packet.push(*kind, value.clone());
    }
    packet.emit_dynamic_request(SECRET).unwrap()
}

/// The answer that has come, if one has: its code and Error-Cause.
fn answer(w: &mut World, request: &[u8]) -> Option<(Code, Option<u32>)> {
    let bytes = w.obeyed.pop_front()?;
    assert_eq!(w.obeyed.len(), 0, "one answer");
    let authenticator = request[4..20].try_into().unwrap();
    let packet = verify_response(&bytes, &authenticator, SECRET, Missing::Refuse).unwrap();
    let cause = packet.get(Kind::ERROR_CAUSE).map(|value| match value {
        Value::Integer(cause) => *cause,
        other => panic!("{other:?}"),
    });
    Some((packet.code, cause))
}

fn ask(w: &mut World, code: Code, attributes: &[(Kind, Value)]) -> Option<(Code, Option<u32>)> {
    let bytes = request(code, 1, attributes);
    w.order("192.0.2.9", &bytes);
    answer(w, &bytes)
}

pub fn change(w: &mut World, attributes: &[(Kind, Value)]) -> Option<(Code, Option<u32>)> {
    ask(w, Code::COA_REQUEST, attributes)
}

pub const ACK: Option<(Code, Option<u32>)> = Some((Code::COA_ACK, None));

pub fn nak(cause: u32) -> Option<(Code, Option<u32>)> {
    Some((Code::COA_NAK, Some(cause)))
}

/// What the user plane does with packets of a home.
pub fn settings(w: &World, n: usize) -> PacketSettings {
    w.up.subscribers()[n].forwarding.packets
}

pub fn history(w: &World) -> Vec<String> {
    let blocks = w.history.iter();
    let all = blocks.flat_map(|(_, block)| events(block));
    let told = all.filter_map(|event| match event.what {
        What::Subscriber(_, Step::Authorized { by, text }) => Some(format!("{by}: {text}")),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_change_is_acknowledged_when_user_plane_and_store_have_it() {
    let mut w = world(2);
    let before = settings(&w, 1);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), gold(), mtu(1400)]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    assert_eq!(
        answer(&mut w, &bytes),
        None,
        "the user plane has not answered"
    );
    w.stall_disk();
    w.answer_late();
    assert_eq!(answer(&mut w, &bytes), None, "it is not durable");
    assert_eq!(settings(&w, 0).mtu, Some(1400));
    w.disk_recovers();
    assert_eq!(answer(&mut w, &bytes), ACK);

    let changed = PacketSettings {
        rate_down: Some(Rate::kbps(100_000)),
        vlan_priority: 5,
        ..PacketSettings::with_mtu(1400)
    };
    assert_eq!(settings(&w, 0), changed);
    assert_eq!(settings(&w, 1), before, "nobody else");
    w.restart_control_plane();
    w.restart_user_plane();
    w.run(10 * SECOND);
    assert_eq!((settings(&w, 0), w.online()), (changed, 2));
    w.assert_balanced();
    assert_eq!(
        history(&w),
        [
            "RADIUS server 192.0.2.9: MTU: 1492, now 1400; VLAN priority: none, now 5; rate down: none, now 100000 kbit/s"
        ]
    );
}

#[test]
fn a_change_that_changes_nothing_is_acknowledged_and_lasts() {
    let mut w = world(1);
    assert_eq!(change(&mut w, &[user(0), mtu(1492)]), ACK);
    w.configure(&["set subscriber-profiles home mtu 1300"])
        .unwrap();
    assert_eq!(settings(&w, 0).mtu, Some(1492), "RADIUS has said it");
}

#[test]
fn a_commit_and_a_change_do_not_undo_each_other() {
    let mut w = world(1);
    assert_eq!(change(&mut w, &[user(0), mtu(1400)]), ACK);
    w.configure(&["set subscriber-profiles home vlan-priority 3"])
        .unwrap();
    let both = PacketSettings {
        vlan_priority: 3,
        ..PacketSettings::with_mtu(1400)
    };
    assert_eq!(settings(&w, 0), both);

    // at the same time
    let bytes = request(Code::COA_REQUEST, 2, &[user(0), mtu(1350)]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    w.configure(&["set subscriber-profiles home vlan-priority 4"])
        .unwrap();
    w.answer_late();
    assert_eq!(answer(&mut w, &bytes), ACK);
    let both = PacketSettings {
        vlan_priority: 4,
        ..PacketSettings::with_mtu(1350)
    };
    assert_eq!(settings(&w, 0), both);
}

#[test]
fn changes_of_one_session_are_carried_out_in_order() {
    let mut w = world(1);
    let requests: Vec<Vec<u8>> = (0..9u8)
        .map(|n| request(Code::COA_REQUEST, n, &[user(0), mtu(1300 + u32::from(n))]))
        .collect();
    w.be_late();
    for bytes in &requests {
        w.order("192.0.2.9", bytes);
    }
    assert_eq!(answer(&mut w, &requests[8]), nak(506), "too many");
    w.answer_late();
    w.run(SECOND);
    assert_eq!(w.obeyed.len(), 8);
    assert!(w.obeyed.iter().all(|answer| answer[0] == Code::COA_ACK.0));
    assert_eq!(settings(&w, 0).mtu, Some(1307));
    w.assert_balanced();
}

#[test]
fn what_the_user_plane_rejects_has_changed_nothing() {
    let mut w = world(1);
    let before = settings(&w, 0);
    w.up.least_mtu = 1450;
    assert_eq!(change(&mut w, &[user(0), gold(), mtu(1300)]), nak(506));
    assert_eq!(settings(&w, 0), before);
    w.up.least_mtu = 0;
    w.configure(&["set subscriber-profiles home vlan-priority 2"])
        .unwrap();
    let expected = PacketSettings {
        vlan_priority: 2,
        ..before
    };
    assert_eq!(settings(&w, 0), expected, "and it is forgotten");
    assert_eq!(history(&w), Vec::<String>::new());
    w.assert_balanced();
}

#[test]
fn without_an_answer_of_the_user_plane_there_is_none_and_a_repetition_succeeds() {
    let mut w = world(1);
    let before = settings(&w, 0);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), mtu(1400)]);
    w.up.silent_about_changes = true;
    w.order("192.0.2.9", &bytes);
    w.run(60 * SECOND);
    w.up.silent_about_changes = false;
    w.run(60 * SECOND);
    assert_eq!(answer(&mut w, &bytes), None, "nobody knows");
    assert_eq!(settings(&w, 0), before, "the policy of before is asserted");
    w.assert_balanced();
    w.order("192.0.2.9", &bytes);
    assert_eq!(answer(&mut w, &bytes), ACK);
    w.order("192.0.2.9", &bytes);
    assert_eq!(answer(&mut w, &bytes), ACK, "the same answer again");
    assert_eq!(settings(&w, 0).mtu, Some(1400));
    assert_eq!(history(&w).len(), 1);
}

#[test]
fn a_user_plane_that_is_away_takes_no_change() {
    let mut w = world(1);
    w.cut = true;
    w.run(60 * SECOND);
    assert_eq!(change(&mut w, &[user(0), mtu(1400)]), nak(506));
    w.cut = false;
    w.run(60 * SECOND);
    assert_eq!(settings(&w, 0).mtu, Some(1492));
}

#[test]
fn a_session_is_found_by_every_identifier_and_only_one() {
    let mut w = world(2);
    w.configure(&[
        "set ipv6-pools lans prefix 2001:db8:4000::/36",
        "set ipv6-pools lans prefix-length 56",
        "set ipv6-pools routers prefix 2001:db8:5000::/64",
        "set ipv6-pools routers prefix-length 128",
        "set subscriber-profiles home delegated-pools lans",
        "set subscriber-profiles home ipv6-address-pools routers",
    ])
    .unwrap();
    (0..2).for_each(|home| w.begin_ppp_anew(home));
    w.run(10 * SECOND);
    let session = w.sessions().remove(0);
    let delegated = session.routes[0].parse().unwrap();
    let bindings = w.up.subscribers().remove(0).forwarding.bindings;
    let (ipv4, ipv6) = (session.ipv4.unwrap(), session.ipv6_prefix.unwrap());
    let port = format!(
        "up1/access0.{}.{}",
        session.s_tag.unwrap(),
        session.c_tag.unwrap()
    );
    let own = [
        (Kind::ACCT_SESSION_ID, session.id.as_str().into()),
        (Kind::FRAMED_IP_ADDRESS, Value::Ipv4(ipv4.parse().unwrap())),
        (
            Kind::FRAMED_IPV6_PREFIX,
            Value::Ipv6Prefix(ipv6.parse().unwrap()),
        ),
        (
            Kind::FRAMED_IPV6_ADDRESS,
            Value::Ipv6(bindings.ipv6_address().unwrap()),
        ),
        (Kind::DELEGATED_IPV6_PREFIX, Value::Ipv6Prefix(delegated)),
        (
            Kind::CALLING_STATION_ID,
            session.mac.to_uppercase().as_str().into(),
        ),
        (Kind::NAS_PORT_ID, port.as_str().into()),
        (Kind::USER_NAME, Value::Octets(session.user.into())),
    ];
    for id in &own {
        assert_eq!(change(&mut w, &[id.clone(), mtu(1400)]), ACK, "{id:?}");
    }
    let mut all = own.to_vec();
    all.push(mtu(1380));
    assert_eq!(change(&mut w, &all), ACK);
    let other = (Kind::USER_NAME, Value::Octets(b"home9".to_vec()));
    assert_eq!(
        change(&mut w, &[own[1].clone(), other, mtu(1400)]),
        nak(503)
    );
    let nobody = (Kind::ACCT_SESSION_ID, "ffff".into());
    assert_eq!(change(&mut w, &[nobody, mtu(1400)]), nak(503));
}

/// More sessions than are compared at once with identifiers that no index leads to, with their addresses.
fn many() -> (World, Vec<(Kind, Value)>) {
    let homes = 1100;
    let choice = Choice {
        sessions: 2000,
        half_open: 2000,
        ..Choice::radius()
    };
    let mut w = world_of(homes, choice);
    let mut sessions = w.sessions();
    sessions.sort_by_key(|session| session.id.clone());
    let address = |ipv4: &String| {
        let address = Value::Ipv4(ipv4.parse().unwrap());
        (Kind::FRAMED_IP_ADDRESS, address)
    };
    let addresses = sessions.iter().filter_map(|session| session.ipv4.as_ref());
    let addresses: Vec<_> = addresses.map(address).collect();
    assert_eq!(addresses.len(), homes);
    (w, addresses)
}

#[test]
fn who_is_meant_by_an_address_is_found_among_very_many_sessions() {
    let (mut w, addresses) = many();
    let nobody = Value::Ipv4([198, 51, 100, 1].into());
    let nobody = (Kind::FRAMED_IP_ADDRESS, nobody);
    let last = addresses.last().unwrap().clone();
    let change = request(Code::COA_REQUEST, 1, &[last.clone(), mtu(1400)]);
    let refused = request(Code::COA_REQUEST, 2, &[nobody, mtu(1400)]);
    w.order("192.0.2.9", &change);
    w.order("192.0.2.9", &refused);
    w.order("192.0.2.9", &change);
    assert_eq!(w.obeyed.len(), 0, "both are looked for");
    w.assert_balanced();
    w.run(SECOND);
    let refusal = w.obeyed.pop_back().unwrap();
    assert_eq!(answer(&mut w, &change), ACK);
    w.obeyed.push_back(refusal);
    assert_eq!(answer(&mut w, &refused), nak(503));
    let changed = |w: &World| {
        let subscribers = w.up.subscribers();
        let mtus = subscribers.iter().map(|s| s.forwarding.packets.mtu);
        mtus.filter(|mtu| *mtu == Some(1400)).count()
    };
    assert_eq!(changed(&w), 1);

    // it ends while it is looked for
    let late = request(Code::COA_REQUEST, 3, &[addresses[0].clone(), mtu(1300)]);
    w.order("192.0.2.9", &late);
    assert_eq!(w.obeyed.len(), 0);
    let holder = (0..w.homes.len())
        .find(|home| w.homes[*home].ipv4().map(Value::Ipv4) == Some(addresses[0].1.clone()));
    w.hang_up(holder.unwrap());
    w.run(SECOND);
    assert_eq!(answer(&mut w, &late), nak(503));
    w.assert_balanced();
}

#[test]
fn no_more_requests_are_looked_for_than_there_is_room_for() {
    let (mut w, addresses) = many();
    let requests: Vec<Vec<u8>> = (0..70)
        .map(|n| {
            request(
                Code::DISCONNECT_REQUEST,
                n,
                &[addresses[usize::from(n)].clone()],
            )
        })
        .collect();
    requests.iter().for_each(|one| w.order("192.0.2.9", one));
    let refused = requests[64..].iter();
    for one in refused {
        let first = w.obeyed.pop_front().unwrap();
        let others = std::mem::take(&mut w.obeyed);
        w.obeyed.push_back(first);
        assert_eq!(answer(&mut w, one), Some((Code::DISCONNECT_NAK, Some(506))));
        w.obeyed = others;
    }
    assert_eq!(w.obeyed.len(), 0);
    w.run(SECOND);
    assert_eq!((w.obeyed.len(), w.online()), (64, addresses.len() - 64));
    w.assert_balanced();
}

#[test]
fn a_request_about_two_sessions_is_rejected() {
    let mut w = world(1);
    w.dial_instead(0); // another router, the same user
    w.homes[0] = {
        let mut config = w.homes[0].config().clone();
        config.mac = wire::eth::MacAddr([2, 0, 0, 0, 9, 9]);
        cpe::Home::new(config, 7)
    };
    w.dial(0);
    w.run(10 * SECOND);
    let same = w.sessions().iter().filter(|s| s.user == "home0").count();
    assert_eq!(same, 2, "{:?}", w.sessions());
    assert_eq!(change(&mut w, &[user(0), mtu(1400)]), nak(508));
    let end = ask(&mut w, Code::DISCONNECT_REQUEST, &[user(0)]);
    assert_eq!(end, Some((Code::DISCONNECT_NAK, Some(508))));
}

#[test]
fn a_profile_that_is_not_there_or_of_another_instance_is_rejected() {
    let mut w = world(1);
    for (kind, value) in [
        (Kind::FILTER_ID, "nowhere".into()),
        (Kind::FILTER_ID, "walled".into()),
        mtu(100),
    ] {
        let rejected = change(
            &mut w,
            &[user(0), (kind, value), (Kind::IDLE_TIMEOUT, 60.into())],
        );
        assert_eq!(rejected, nak(407));
    }
    assert_eq!(settings(&w, 0).idle_timeout, None, "half of it is nothing");
}

#[test]
fn time_outs_count_from_the_request_and_zero_is_none() {
    let mut w = world(1);
    w.run(100 * SECOND);
    let timeout = |seconds: u32| (Kind::SESSION_TIMEOUT, seconds.into());
    assert_eq!(change(&mut w, &[user(0), timeout(300)]), ACK);
    w.run(250 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(change(&mut w, &[user(0), timeout(0)]), ACK);
    w.run(500 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(change(&mut w, &[user(0), timeout(60)]), ACK);
    w.run(70 * SECOND);
    assert_eq!(w.online(), 0);
}

#[test]
fn interim_interval_and_class_apply_to_the_records_that_follow() {
    let mut w = world(1);
    let class = (Kind::CLASS, Value::Octets(b"silver".to_vec()));
    let interim = (Kind::ACCT_INTERIM_INTERVAL, 60.into());
    assert_eq!(change(&mut w, &[user(0), interim, class]), ACK);
    w.run(130 * SECOND);
    let last = w.radius.records.last().unwrap();
    assert_eq!(w.radius.kinds(), [1, 3, 3]);
    assert_eq!(
        last.get(Kind::CLASS),
        Some(&Value::Octets(b"silver".to_vec()))
    );
}

#[test]
fn a_disconnection_is_acknowledged_when_the_session_is_over_and_stored_as_such() {
    let mut w = world(2);
    let bytes = request(Code::DISCONNECT_REQUEST, 1, &[user(0)]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    assert_eq!(answer(&mut w, &bytes), None, "the user plane has it still");
    w.stall_disk();
    w.answer_late();
    assert_eq!(answer(&mut w, &bytes), None, "the store has it still");
    w.disk_recovers();
    assert_eq!(answer(&mut w, &bytes), Some((Code::DISCONNECT_ACK, None)));
    assert_eq!((w.up.subscribers().len(), w.sessions().len()), (1, 1));
    w.run(SECOND);
    let stop = w.radius.records.last().unwrap();
    assert_eq!(
        stop.get(Kind::ACCT_TERMINATE_CAUSE),
        Some(&Value::Integer(6)),
        "Admin-Reset"
    );
    let again = request(Code::DISCONNECT_REQUEST, 2, &[user(0)]);
    w.order("192.0.2.9", &again);
    let gone = Some((Code::DISCONNECT_NAK, Some(503)));
    assert_eq!(answer(&mut w, &again), gone);
    w.assert_balanced();
}

#[test]
fn a_change_of_a_session_that_ends_meanwhile_is_rejected() {
    let mut w = world(1);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), mtu(1400)]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    w.hang_up(0);
    assert_eq!(answer(&mut w, &bytes), nak(503));
    w.answer_late();
    w.run(SECOND);
    w.assert_balanced();
}

#[test]
fn who_authenticates_again_while_a_change_is_under_way_has_both() {
    let mut w = world(1);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), mtu(1400)]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    w.radius.accept = vec![(Kind::FILTER_ID, "gold".into())];
    w.begin_ppp_anew(0);
    w.answer_late();
    w.run(10 * SECOND);
    assert_eq!(answer(&mut w, &bytes), ACK);
    let expected = PacketSettings {
        rate_down: Some(Rate::kbps(100_000)),
        vlan_priority: 5,
        ..PacketSettings::with_mtu(1400)
    };
    assert_eq!(settings(&w, 0), expected);
}

#[test]
fn a_control_plane_that_died_before_it_answered_answers_the_repetition() {
    let mut w = world(1);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), mtu(1400)]);
    w.order("192.0.2.9", &bytes);
    assert_eq!(answer(&mut w, &bytes), ACK);
    w.restart_control_plane();
    w.run(10 * SECOND);
    w.order("192.0.2.9", &bytes);
    assert_eq!(answer(&mut w, &bytes), ACK);
    assert_eq!(settings(&w, 0).mtu, Some(1400));
}

#[test]
fn without_clients_nobody_listens() {
    let mut w = world(1);
    w.configure(&["set aaa dynamic-authorization port 1700"])
        .unwrap();
    assert_eq!(w.dynamic_port, Some(1700));
    w.configure(&["delete aaa dynamic-authorization clients one"])
        .unwrap();
    assert_eq!(w.dynamic_port, None);
    assert_eq!(change(&mut w, &[user(0), mtu(1400)]), None);
    let rows = match w.call(northbound::Request::ListDrops) {
        Ok(northbound::Response::Drops { drops }) => drops,
        other => panic!("{other:?}"),
    };
    let unknown = rows.iter().find(|row| row.name == "coa-unknown-client");
    assert_eq!(unknown.unwrap().count, 1);
}

/// Networks behind the routers, as the control plane shows them and as the user plane has them.
fn routes(w: &mut World) -> Vec<Vec<String>> {
    let shown: Vec<Vec<String>> = w.sessions().into_iter().map(|s| s.routes).collect();
    for (n, shown) in shown.iter().enumerate() {
        let subscribers = w.up.subscribers();
        let others = subscribers[n].forwarding.bindings.others();
        let told: Vec<String> = others.map(|binding| binding.prefix.to_string()).collect();
        assert_eq!(told, *shown);
    }
    shown
}

#[test]
fn routes_of_a_family_are_replaced_together() {
    let mut w = World::new(2, Choice::radius());
    w.radius.accept = vec![route("198.18.1.0/24"), route("2001:db8:a::/48")];
    w.dial(0);
    w.run(10 * SECOND);
    w.radius.accept.clear();
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
    ])
    .unwrap();
    w.dial(1);
    w.run(10 * SECOND);
    let bytes = request(
        Code::COA_REQUEST,
        9,
        &[user(0), route("198.18.1.0/24"), route("198.18.2.0/24")],
    );
    w.be_late();
    w.order("192.0.2.9", &bytes);
    assert!(w.plane.ledger().is_balanced(), "also while it is under way");
    w.answer_late();
    assert_eq!(answer(&mut w, &bytes), ACK);
    let all = ["198.18.1.0/24", "198.18.2.0/24", "2001:db8:a::/48"];
    assert_eq!(routes(&mut w), [all.to_vec(), vec![]]);
    let taken = change(
        &mut w,
        &[user(1), route("198.18.3.0/24"), route("198.18.2.0/25")],
    );
    assert_eq!(taken, nak(407), "one of them is the other's");
    assert_eq!(change(&mut w, &[user(0), route("198.18.4.0/24")]), ACK);
    assert_eq!(
        change(&mut w, &[user(1), route("198.18.2.0/24")]),
        ACK,
        "it is free"
    );
    w.restart_control_plane();
    w.run(10 * SECOND);
    let expected = [
        vec!["198.18.4.0/24".to_owned(), "2001:db8:a::/48".to_owned()],
        vec!["198.18.2.0/24".to_owned()],
    ];
    assert_eq!(routes(&mut w), expected);
    w.assert_balanced();
}

#[test]
fn a_user_plane_of_before_is_told_routes_without_metrics() {
    let mut w = World::new(1, Choice::radius());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::BINDINGS);
    w.radius.accept = vec![route("198.18.1.0/24 0.0.0.0 7")];
    w.run(10 * SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    let told = &w.up.subscribers()[0].forwarding.bindings;
    let routes = told.iter().filter(|b| b.role == Role::Route);
    assert!(routes.map(|route| route.metric).eq([None]));
    assert_eq!(w.sessions()[0].routes, ["198.18.1.0/24 metric 7"]);
    w.assert_balanced();
}

#[test]
fn another_metric_is_another_route_of_the_kernel_and_a_link_identifies_by_all_its_prefixes() {
    let link = |n: u8| {
        let prefix = format!("2001:db8:9:{n}::/64").parse().unwrap();
        (Kind::FRAMED_IPV6_PREFIX, Value::Ipv6Prefix(prefix))
    };
    let mut w = World::new(1, Choice::radius());
    w.radius.accept = vec![
        route("198.18.1.0/24 0.0.0.0 7"),
        route("2001:db8:a::/48 :: 7"),
        link(1),
        link(2),
    ];
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
    ])
    .unwrap();
    w.dial(0);
    w.run(10 * SECOND);
    let metrics = |w: &World| {
        let told = &w.up.subscribers()[0].forwarding.bindings;
        let routes = told.iter().filter(|b| b.role == Role::Route);
        routes.map(|route| route.metric).collect::<Vec<_>>()
    };
    assert_eq!(metrics(&w), [Some(7), Some(7)]);
    let again = [link(2), link(1), route("198.18.1.0/24 0.0.0.0 8")];
    assert_eq!(change(&mut w, &again), ACK);
    assert_eq!(
        metrics(&w),
        [Some(8), Some(7)],
        "of the other family as before"
    );
    assert_eq!(change(&mut w, &[link(2), route("198.18.1.0/24")]), ACK);
    assert_eq!(metrics(&w), [None, Some(7)]);
    // an audit finds one that is another one on the user plane
    w.up.change_metrics(9);
    assert_eq!(metrics(&w), [Some(9), Some(9)]);
    w.restart_control_plane();
    w.run(10 * SECOND);
    assert_eq!(metrics(&w), [None, Some(7)]);
    let odd = [link(2), route("198.18.1.0/24 0.0.0.0 far")];
    assert_eq!(change(&mut w, &odd), nak(407));
    assert_eq!(change(&mut w, &[link(2), link(3), mtu(1400)]), nak(503));
    w.assert_balanced();
}

#[test]
fn routes_that_the_user_plane_rejects_or_does_not_confirm_are_free_again() {
    let mut w = world(2);
    w.up.least_mtu = 1450;
    let rejected = change(&mut w, &[user(0), mtu(1300), route("198.18.1.0/24")]);
    assert_eq!(rejected, nak(506));
    w.up.least_mtu = 0;
    w.up.silent_about_changes = true;
    assert_eq!(change(&mut w, &[user(0), route("198.18.1.0/24")]), None);
    w.run(60 * SECOND);
    w.up.silent_about_changes = false;
    w.run(60 * SECOND);
    assert_eq!(routes(&mut w), [vec![], Vec::<String>::new()]);
    assert_eq!(change(&mut w, &[user(1), route("198.18.1.0/24")]), ACK);
    w.hang_up(1);
    w.run(10 * SECOND);
    assert_eq!(change(&mut w, &[user(0), route("198.18.1.0/24")]), ACK);
    w.assert_balanced();
}

#[test]
fn who_gets_another_address_while_routes_are_under_way_keeps_both() {
    let mut w = world(1);
    let bytes = request(Code::COA_REQUEST, 1, &[user(0), route("198.18.1.0/24")]);
    w.be_late();
    w.order("192.0.2.9", &bytes);
    let address = Value::Ipv4([198, 18, 9, 9].into());
    w.radius.accept = vec![(Kind::FRAMED_IP_ADDRESS, address)];
    w.begin_ppp_anew(0);
    w.answer_late();
    w.run(10 * SECOND);
    assert_eq!(answer(&mut w, &bytes), ACK);
    let session = w.sessions().remove(0);
    assert_eq!(session.ipv4.as_deref(), Some("198.18.9.9"));
    assert_eq!(session.routes, ["198.18.1.0/24"]);
    w.assert_balanced();
}

#[test]
fn a_vendors_rate_changes_as_it_does_at_the_start() {
    let mut w = world(1);
    // Mikrotik-Rate-Limit
    let specific = b"\x00\x00\x3a\x8c\x08\x072M/8M".to_vec();
    let rate = (Kind::VENDOR_SPECIFIC, Value::Octets(specific));
    assert_eq!(change(&mut w, &[user(0), rate]), ACK);
    let has = settings(&w, 0);
    assert_eq!(
        (has.rate_up, has.rate_down),
        (Some(Rate::kbps(2000)), Some(Rate::kbps(8000)))
    );
}

#[test]
fn a_local_users_session_changes_like_any_other() {
    let mut w = World::new(1, Choice::default());
    w.configure(&[
        "set aaa dynamic-authorization clients one address 192.0.2.9",
        "set aaa dynamic-authorization clients one secret-key coa-secret",
        "set subscriber-profiles gold vlan-priority 5",
        "set users home0 mtu 1450",
        "set users home0 rate-up 1000",
    ])
    .unwrap();
    w.dial_all();
    assert_eq!(settings(&w, 0).mtu, Some(1450));
    assert_eq!(change(&mut w, &[user(0), mtu(1400), gold()]), ACK);
    let changed = PacketSettings {
        vlan_priority: 5,
        rate_up: Some(Rate::kbps(1000)),
        ..PacketSettings::with_mtu(1400)
    };
    assert_eq!(settings(&w, 0), changed);
    w.configure(&["set users home0 rate-up 2000", "set users home0 mtu 1300"])
        .unwrap();
    w.restart_control_plane();
    w.run(10 * SECOND);
    let changed = PacketSettings {
        rate_up: Some(Rate::kbps(2000)),
        ..changed
    };
    assert_eq!(settings(&w, 0), changed, "what RADIUS has said later stays");
}

#[test]
fn a_change_is_part_of_the_last_policy() {
    let mut w = world(1);
    w.configure(&["set access-profiles pppoe fallback last-policy"])
        .unwrap();
    w.hang_up(0);
    w.run(10 * SECOND);
    w.dial_all();
    let timeout = (Kind::SESSION_TIMEOUT, 7200.into());
    let changes = [user(0), gold(), timeout, route("198.18.1.0/24")];
    assert_eq!(change(&mut w, &changes), ACK);
    w.radius.dead = true;
    w.hang_up(0);
    w.run(10 * SECOND);
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 1);
    assert_eq!(settings(&w, 0).vlan_priority, 5);
    assert_eq!(routes(&mut w), [vec!["198.18.1.0/24"]]);
    w.run(2 * 3600 * SECOND);
    assert_eq!(w.online(), 1, "the time-out was of the session before");
}

/// Whoever ends a session wants to be asked before the next one: the last policy is none any more.
#[test]
fn who_is_disconnected_has_no_last_policy() {
    let mut w = world(1);
    w.configure(&["set access-profiles pppoe fallback last-policy"])
        .unwrap();
    w.hang_up(0);
    w.run(10 * SECOND);
    w.dial(0);
    w.run(10 * SECOND);
    let stored = |w: &World| w.store.keys().any(|key| key.starts_with(b"last-answer/"));
    assert!(stored(&w));
    let end = ask(&mut w, Code::DISCONNECT_REQUEST, &[user(0)]);
    w.run(10 * SECOND);
    assert!(!stored(&w), "{end:?}");
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    assert_eq!(w.online(), 0);
}
