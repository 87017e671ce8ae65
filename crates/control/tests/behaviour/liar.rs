//! A user plane that says more than it may.

use crate::world::radius::number;
use crate::world::{Choice, STARTED, World};
use control::topology::MAX_SESSIONS;
use core::net::SocketAddr;
use core::time::Duration;
use northbound::{Request, Response, Session};
use pfcp::{Config, Event, Node, Role};
use wire::pfcp::own::AUDIT_BLOCK;
use wire::pfcp::{Cause, NodeId, ReportType, SessionReportRequest, UsageReport, VolumeMeasurement};
use wire::radius::{Kind, Packet};

const MINUTE: Duration = Duration::from_secs(60);

/// A second user plane, of the same control plane.
fn other(w: &mut World) -> Node {
    let lines = [
        "set user-planes up2 address 192.0.2.33",
        "set user-planes up2 management /run/up2.sock",
        "set user-planes up2 ports access0 role access",
        "set user-planes up2 ports access0 device a",
        "set user-planes up2 ports access0 segments all access-profile pppoe",
    ];
    w.configure(&lines).unwrap();
    w.to_other.clear();
    let mut node = Node::new(Config::new(Role::User, NodeId::Fqdn("up2".into()), STARTED));
    node.add_peer(w.now, SocketAddr::from(([192, 0, 2, 1], 8805)));
    node.on_timeout(w.now);
    let heard = w.settle_other(&mut node);
    let is_up = |event: &Event| matches!(event, Event::AssociationUp { .. });
    assert!(heard.iter().any(is_up), "{heard:?}");
    node
}

/// A usage report of so many octets up.
fn report(sequence: u32, octets: u64) -> SessionReportRequest {
    let volume = VolumeMeasurement {
        uplink_octets: Some(octets),
        ..VolumeMeasurement::default()
    };
    SessionReportRequest {
        report_type: ReportType::USAGE,
        usage_reports: vec![UsageReport {
            urr_id: 1,
            sequence,
            volume: Some(volume),
            ..UsageReport::default()
        }],
        unanswered_echoes: None,
    }
}

#[test]
fn a_user_plane_cannot_report_the_usage_of_another_ones_session() {
    let mut w = World::new(1, Choice::radius());
    w.dial_all();
    let sessions: Vec<Session> = w.sessions();
    let seid = u64::from_str_radix(&sessions[0].id, 16).unwrap();
    let mut other = other(&mut w);
    let report = report(7, 1 << 40);
    let peer = SocketAddr::from(([192, 0, 2, 1], 8805));
    other.request(w.now, peer, seid, report, 0).unwrap();
    let heard = w.settle_other(&mut other);
    let causes = heard.iter().filter_map(|event| match event {
        Event::Response { message, .. } => Some(message.cause()),
        _ => None,
    });
    let unknown = Some(Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(
        causes.collect::<Vec<_>>(),
        [unknown],
        "as of one that is not there"
    );
    w.hang_up(0);
    let stop = w.radius.records.last().unwrap();
    assert_eq!(number(stop, Kind::ACCT_STATUS_TYPE), 2);
    assert!(number(stop, Kind::ACCT_INPUT_GIGAWORDS) == 0, "{stop:?}");
}

#[test]
fn a_user_plane_that_names_unknown_sessions_without_end_is_not_believed_for_ever() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let (names, before) = (w.up.names(), w.up.audited);
    // as many blocks as the sessions take that a user plane can have, with one that is too many
    let most = MAX_SESSIONS as usize / AUDIT_BLOCK + 1;
    w.up.invents_sessions = most + 100;
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!(w.up.audited - before, most);
    assert_eq!((w.up.names(), w.online()), (names, 1));

    w.up.invents_sessions = 0;
    let rules = w.up.subscribers();
    w.up.damage_one();
    let audited = w.call(Request::CheckLedger { repair: false });
    let Ok(Response::Ledger { ledger }) = audited else {
        panic!("{audited:?}")
    };
    assert_eq!(ledger.findings.len(), 1, "{ledger:?}");
    assert_eq!((w.up.subscribers(), w.online()), (rules, 1));
}

/// A user plane is believed about its own sessions, whatever it says: nobody else counts their packets.
#[test]
fn a_user_plane_spoils_the_accounting_of_its_own_sessions_alone() {
    let mut w = World::new(3, Choice::radius());
    w.dial_all();
    w.user_plane_reports(5);
    let sessions: Vec<Session> = w.sessions();
    let seid = |n: usize| u64::from_str_radix(&sessions[n].id, 16).unwrap();
    let say = |w: &mut World, n, sequence, octets| {
        w.user_plane_repeats((seid(n), report(sequence, octets)));
    };
    // no report has a higher number, and each counts once
    for _ in 0..2 {
        say(&mut w, 0, u32::MAX, 1 << 40);
    }
    // more than there is room for stays at the most
    for sequence in [100, 101, 102] {
        say(&mut w, 1, sequence, 1 << 63);
    }
    assert_eq!(w.online(), 3);
    w.restart_control_plane();
    w.run(MINUTE);
    say(&mut w, 0, u32::MAX, 1 << 40);
    let told = w.up.told.clone();
    assert_eq!(told, vec![Cause::REQUEST_ACCEPTED; told.len()]);
    (0..3).for_each(|n| w.hang_up(n));
    w.run(MINUTE);
    let carried = |packet: &Packet| {
        let [high, low] = [Kind::ACCT_INPUT_GIGAWORDS, Kind::ACCT_INPUT_OCTETS];
        (number(packet, high), number(packet, low))
    };
    let stops: Vec<_> = w.radius.records[3..].iter().map(carried).collect();
    // the true reports are of another rule: 5 octets, 1,000 for the list of sessions, and 70 with the end
    assert_eq!(stops, [(256, 1075), (u32::MAX, u32::MAX), (0, 1075)]);
}
