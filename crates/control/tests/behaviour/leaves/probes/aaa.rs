//! Where settings of AAA take effect.

use super::{SECOND, comes_in, dial, online, quiet};
use crate::world::World;
use crate::world::radius::vendors_numbers;
use core::time::Duration;
use std::collections::BTreeSet;
use wire::radius::{Code, Kind, Packet, Value};

/// Whom the control plane asks for RADIUS, and what for.
pub fn asks(w: &mut World) -> String {
    dial(w);
    let asked: BTreeSet<String> = w.asked.iter().map(|(_, to, _)| to.to_string()).collect();
    format!("{asked:?}")
}

/// The servers that are asked about four homes, one after the other.
pub fn all_that_answer(w: &mut World) -> String {
    quiet(w);
    for n in 0..4 {
        w.dial(n);
        w.run(5 * SECOND);
    }
    let asked: BTreeSet<String> = w
        .asked
        .iter()
        .map(|(_, to, _)| to.ip().to_string())
        .collect();
    format!("{asked:?}")
}

/// Where requests come from, and who says so.
pub fn comes_from(w: &mut World) -> String {
    dial(w);
    let own = |(_, socket): (_, &control::RadiusSocket)| {
        let binding = &socket.binding;
        (binding.group == "radius").then(|| binding.clone())
    };
    let mut own = w.radius_sockets.iter().filter_map(own);
    let binding = own.next_back().expect("the group has sockets");
    let nas = match w.radius.records[0].get(Kind::NAS_IP_ADDRESS) {
        Some(Value::Ipv4(address)) => address.to_string(),
        other => format!("{other:?}"),
    };
    format!("from {:?}, NAS {nas}, in {:?}", binding.source, binding.vrf)
}

/// How a server over TCP or TLS is connected to, and how many homes come in by it.
pub fn connects(w: &mut World) -> String {
    let came = comes_in(w);
    let transport = w.aaa_servers().remove(0).transport;
    let tls = w.radius_servers.values().next().map(|server| &server.tls);
    format!("{came} over {transport}, {tls:?}")
}

/// The same, when none answers.
pub fn all_asked(w: &mut World) -> String {
    w.radius.dead = true;
    let asked = {
        dial(w);
        w.run(60 * SECOND);
        let asked: BTreeSet<String> = w.asked.iter().map(|(_, to, _)| to.to_string()).collect();
        format!("{asked:?}")
    };
    w.radius.dead = false;
    w.run(300 * SECOND);
    asked
}

/// By which fallback the first and the second home come in when no server answers. A server has accepted the first one before.
pub fn falls_back(w: &mut World) -> String {
    dial(w);
    w.radius.dead = true;
    let comes_in = |w: &mut World, n: usize| {
        quiet(w);
        w.dial(n);
        w.run(60 * SECOND);
        match online(w) {
            0 => "no".to_owned(),
            _ => w.sessions().remove(0).fallback,
        }
    };
    let both = [comes_in(w, 0), comes_in(w, 1)];
    w.radius.dead = false;
    quiet(w);
    w.run(100 * SECOND);
    format!("{both:?}")
}

/// For how long the first home comes in by the last policy.
pub fn falls_back_after(w: &mut World) -> String {
    dial(w);
    quiet(w);
    w.radius.dead = true;
    let mut longest = "not at all".to_owned();
    for (wait, after) in [(50, 50), (60, 110), (90, 200)] {
        w.run(wait * 60 * SECOND);
        if falls_back_now(w) {
            longest = format!("{after} minutes");
        }
    }
    w.radius.dead = false;
    quiet(w);
    w.run(100 * SECOND);
    longest
}

pub fn falls_back_now(w: &mut World) -> bool {
    w.dial(0);
    w.run(60 * SECOND);
    let is_in = online(w) == 1;
    quiet(w);
    is_in
}

pub fn secret(w: &mut World) -> String {
    dial(w);
    w.radius.secret.escape_ascii().to_string()
}

/// Whether a Disconnect-Request about nobody gets an answer.
pub fn is_obeyed(w: &mut World, host: &str, bytes: &[u8]) -> bool {
    w.obeyed.clear();
    w.order(host, bytes);
    !w.obeyed.is_empty()
}

pub fn order(w: &World, age: Option<u32>, secret: &str) -> Vec<u8> {
    let identifier = (w.said % 251) as u8;
    let mut packet = Packet::new(Code::DISCONNECT_REQUEST, identifier, [0; 16]);
    packet.push(Kind::USER_NAME, b"nobody");
    if let Some(age) = age {
        packet.push(Kind::EVENT_TIMESTAMP, Value::Time(w.moment().unix - age));
    }
    packet.emit_dynamic_request(secret.as_bytes()).unwrap()
}

pub fn client(w: &mut World) -> String {
    let bytes = order(w, None, "first-key");
    let hosts = ["192.0.2.9", "192.0.2.10", "192.0.2.11"];
    let obeyed = hosts.into_iter().filter(|host| is_obeyed(w, host, &bytes));
    obeyed.collect::<Vec<_>>().join(" ")
}

pub fn client_secret(w: &mut World) -> String {
    let secrets = ["first-key", "second-key", "third-key"];
    let obeyed = secrets.into_iter().filter(|secret| {
        let bytes = order(w, None, secret);
        is_obeyed(w, "192.0.2.9", &bytes)
    });
    obeyed.collect::<Vec<_>>().join(" ")
}

pub fn unsigned_order(w: &mut World) -> String {
    let mut packet = Packet::new(Code::DISCONNECT_REQUEST, 1, [0; 16]);
    packet.push(Kind::USER_NAME, w.said.to_string().as_str());
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    wire::radius::sign_accounting_request(&mut bytes, b"first-key");
    format!("without: {}", is_obeyed(w, "192.0.2.9", &bytes))
}

pub fn dynamic_port(w: &mut World) -> String {
    format!("{:?}", w.dynamic_port)
}

pub fn timely_orders(w: &mut World) -> String {
    w.run(3 * SECOND);
    let obeyed = [5, 100, 400].into_iter().filter(|age| {
        let bytes = order(w, Some(*age), "first-key");
        is_obeyed(w, "192.0.2.9", &bytes)
    });
    let obeyed: Vec<String> = obeyed.map(|age| age.to_string()).collect();
    obeyed.join(" ")
}

pub fn timeless_order(w: &mut World) -> String {
    w.run(700 * SECOND); // what is known is forgotten
    let bytes = order(w, None, "first-key");
    format!("without: {}", is_obeyed(w, "192.0.2.9", &bytes))
}

pub fn unanswered(w: &mut World) -> String {
    quiet(w);
    w.run(100 * SECOND); // whoever was thought dead is asked again
    w.asked.clear();
    w.radius.dead = true;
    w.dial(0);
    let begin = w.now;
    w.run(59 * SECOND); // the session is given up
    while w.now - begin < 150 * SECOND {
        w.run(SECOND);
    }
    w.radius.dead = false;
    let times: Vec<Duration> = w
        .asked
        .iter()
        .filter(|(_, _, code)| *code == 1)
        .map(|(at, ..)| *at)
        .collect();
    let after = times.get(1).map_or(0, |second| {
        (*second - times[0]).as_secs_f64().round() as u64
    });
    // the first timeout is up to a tenth off
    let after = [2, 6, 12]
        .into_iter()
        .find(|n: &u64| n.abs_diff(after) <= 1);
    let answer = format!(
        "after {} seconds, {} times",
        after.unwrap_or(0),
        times.len()
    );
    w.run(100 * SECOND);
    answer
}

/// Whether a server that has not answered is asked again after 10 and after 30 seconds.
pub fn passed_over(w: &mut World) -> String {
    quiet(w);
    w.run(100 * SECOND);
    w.radius.dead_at = Some("192.0.2.9".parse().unwrap());
    let asks_it = |w: &mut World, n: usize| {
        w.asked.clear();
        w.dial(n);
        w.run(SECOND);
        w.asked
            .iter()
            .any(|(_, to, code)| *code == 1 && to.ip().to_string() == "192.0.2.9")
    };
    asks_it(w, 0);
    while online(w) == 0 {
        w.run(SECOND);
    }
    w.run(9 * SECOND);
    let soon = asks_it(w, 1);
    w.run(21 * SECOND);
    let later = asks_it(w, 2);
    w.radius.dead_at = None;
    format!("{:?}", [soon, later])
}

pub fn unsigned(w: &mut World) -> String {
    w.radius.unsigned = true;
    let came = comes_in(w);
    w.radius.unsigned = false;
    w.run(100 * SECOND);
    came
}

/// How often a server that has just died is asked for its status within 65 seconds.
pub fn probed(w: &mut World) -> String {
    dial(w); // it answers requests
    quiet(w);
    w.run(100 * SECOND);
    w.radius.dead = true;
    w.dial(0);
    let begin = w.now;
    let is_out = |w: &mut World| w.aaa_servers().iter().any(|s| s.out_seconds.is_some());
    while !is_out(w) && w.now - begin < 60 * SECOND {
        w.run(SECOND);
    }
    w.asked.clear();
    w.run(65 * SECOND);
    let count = w.asked.iter().filter(|(_, _, code)| *code == 12).count();
    w.radius.dead = false;
    w.run(100 * SECOND);
    format!("{count} Status-Server")
}

/// Whether the servers of the first group hear that the control plane starts without a session.
pub fn announced(w: &mut World) -> String {
    quiet(w);
    w.run(30 * SECOND);
    w.asked.clear();
    w.restart_control_plane();
    w.run(SECOND);
    let is_first =
        |(_, to, _): &&(Duration, std::net::SocketAddr, u8)| to.ip().to_string() == "192.0.2.9";
    match w.asked.iter().find(is_first) {
        Some(_) => "Accounting-On",
        None => "not announced",
    }
    .into()
}

pub fn identifier(w: &mut World) -> String {
    dial(w);
    format!("{:?}", w.radius.records[0].get(Kind::NAS_IDENTIFIER))
}

/// Names in the Access-Request of the first home.
pub fn names(w: &mut World) -> String {
    dial(w);
    let request = w.radius.requests.last().unwrap();
    let kinds = [
        Kind::USER_NAME,
        Kind::NAS_PORT_ID,
        Kind::CALLING_STATION_ID,
        Kind::CALLED_STATION_ID,
    ];
    let names = kinds.map(|kind| match request.get(kind) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Octets(octets)) => octets.escape_ascii().to_string(),
        other => format!("{other:?}"),
    });
    names.join(" ")
}

pub fn interims(w: &mut World) -> String {
    dial(w);
    w.run(210 * SECOND);
    w.radius
        .kinds()
        .iter()
        .filter(|kind| **kind == 3)
        .count()
        .to_string()
}

/// Vendors' attributes in the first Stop: how many, and the octets of IPv6 up and down.
pub fn families(w: &mut World) -> String {
    dial(w);
    w.hang_up(0);
    w.run(10 * SECOND);
    let stop = w.radius.kinds().iter().position(|kind| *kind == 2);
    let stop = &w.radius.records[stop.expect("a Stop")];
    let (vendor, up, down) = match vendors_numbers(stop, 4874).len() {
        0 => (2352, 220, 221),
        _ => (4874, 151, 152),
    };
    let numbers = vendors_numbers(stop, vendor);
    let [up, down] = [up, down].map(|number: u8| numbers.get(&number).copied().unwrap_or(0));
    format!("{} of vendor {vendor}, IPv6 {up} {down}", numbers.len())
}

/// How regular the interim records of the first home are, of which one is due each minute.
pub fn interim_times(w: &mut World) -> String {
    dial(w);
    w.asked.clear();
    w.run(40 * 60 * SECOND);
    let is_record = |(_, _, code): &&(Duration, _, u8)| *code == 4;
    let times: Vec<f64> = (w.asked.iter().filter(is_record))
        .map(|(at, ..)| at.as_secs_f64())
        .collect();
    let gaps = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0] - 60.0).abs());
    match gaps.fold(0.0, f64::max) {
        0.0..0.1 => "regular",
        0.1..=6.0 => "irregular by at most a tenth",
        _ => "irregular by more than a tenth",
    }
    .into()
}

/// How often interim records come of a user that the local users let in because no server answered.
pub fn interims_by_fallback(w: &mut World) -> String {
    quiet(w);
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    w.radius.dead = false;
    w.run(600 * SECOND);
    let kinds = w.radius.kinds().into_iter();
    match kinds.filter(|kind| *kind == 3).count() {
        0..4 => "seldom",
        4..8 => "often",
        _ => "always",
    }
    .into()
}

/// The networks behind the first home.
pub fn routes(w: &mut World) -> String {
    dial(w);
    let sessions = w.sessions().into_iter();
    let routes: Vec<String> = sessions.flat_map(|session| session.routes).collect();
    format!("{routes:?}")
}
