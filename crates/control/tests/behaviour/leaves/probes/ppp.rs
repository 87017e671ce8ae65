//! Where settings of PPP and Router Advertisements take effect.

use super::{SECOND, dial, quiet};
use crate::world::World;
use core::time::Duration;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION, Tags};
use wire::nd::{self, Message, Opt};
use wire::ppp::{self, Control};
use wire::pppoe::{self, Discovery, Tag};

/// A client that no home is.
const CLIENT: MacAddr = MacAddr([2, 7, 7, 7, 7, 7]);

/// Sends a frame of the client.
fn send(w: &mut World, ethertype: u16, payload: &[u8]) {
    let header = Header {
        destination: MacAddr::BROADCAST,
        source: CLIENT,
        tags: Tags::qinq(100, 77),
        ethertype,
    };
    let mut frame = Vec::new();
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    w.redirect(&frame);
    w.settle();
}

/// Sends a discovery packet of the client, and returns the answer.
fn ask(w: &mut World, code: u8, tags: Vec<Tag<'_>>) -> Vec<u8> {
    let mut payload = Vec::new();
    let session_id = 0;
    Discovery {
        code,
        session_id,
        tags,
    }
    .emit(&mut payload);
    w.heard.clear();
    send(w, PPPOE_DISCOVERY, &payload);
    let answer = w.heard.first().expect("an answer");
    Frame::parse(answer).unwrap().payload.to_vec()
}

/// Gets a session for the client; its id.
fn begin(w: &mut World) -> u16 {
    quiet(w);
    let offer = ask(w, pppoe::PADI, vec![Tag::ServiceName(b"")]);
    let offer = Discovery::parse(&offer).unwrap();
    let cookie = offer
        .tags
        .into_iter()
        .filter(|tag| matches!(tag, Tag::AcCookie(_)));
    let tags = std::iter::once(Tag::ServiceName(b"")).chain(cookie);
    let pads = ask(w, pppoe::PADR, tags.collect());
    Discovery::parse(&pads).unwrap().session_id
}

/// Code of the LCP packet in a frame to the client.
fn lcp_code(frame: &[u8]) -> Option<u8> {
    let frame = Frame::parse(frame).ok()?;
    let is_session = frame.header.ethertype == PPPOE_SESSION;
    let data = is_session.then(|| ppp::Frame::parse(frame.payload.get(6..)?).ok())??;
    let packet = Control::parse(data.payload).ok()?;
    (data.protocol == ppp::LCP && frame.header.destination == CLIENT).then_some(packet.code)
}

/// What a client that says nothing after PADS hears, and when.
pub fn connects_in_silence(w: &mut World) -> String {
    begin(w);
    let begin = w.now;
    w.heard.clear();
    let (mut requests, mut goodbyes) = (Vec::new(), Vec::new());
    while w.plane.session_count() > 0 && w.now - begin < 200 * SECOND {
        w.run(Duration::from_millis(100));
        for frame in std::mem::take(&mut w.heard) {
            match lcp_code(&frame) {
                Some(ppp::CONFIGURE_REQUEST) => requests.push(w.now - begin),
                Some(ppp::TERMINATE_REQUEST) => goodbyes.push(w.now - begin),
                _ => {}
            }
        }
    }
    let every = requests.windows(2).map(|pair| pair[1] - pair[0]).min();
    format!(
        "{} requests every {} s, {} goodbyes, goodbye after {} s",
        requests.len(),
        every.unwrap_or_default().as_secs_f64().round(),
        goodbyes.len(),
        goodbyes.first().map_or(0.0, |at| at.as_secs_f64().round()),
    )
}

/// How many Configure-Naks a client gets that insists on an MRU of 60.
pub fn insists(w: &mut World) -> String {
    let session_id = begin(w);
    w.heard.clear();
    for id in 0..20 {
        let mut request = Vec::new();
        Control {
            code: ppp::CONFIGURE_REQUEST,
            id,
            data: &[1, 4, 0, 60],
        }
        .emit(ppp::LCP, &mut request);
        let mut payload = Vec::new();
        pppoe::Packet {
            code: pppoe::SESSION,
            session_id,
            payload: &request,
        }
        .emit(&mut payload);
        send(w, PPPOE_SESSION, &payload);
    }
    let codes = w.heard.iter().filter_map(|frame| lcp_code(frame));
    let naks = codes.filter(|code| *code == ppp::CONFIGURE_NAK).count();
    w.run(100 * SECOND);
    format!("{naks} naks")
}

/// Router Advertisements that the first home has got.
fn advertisements(w: &World) -> Vec<nd::RouterAdvertisement> {
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let sessions = frames.filter(|frame| frame.header.ethertype == PPPOE_SESSION);
    let packets = sessions.filter_map(|frame| {
        let data = ppp::Frame::parse(&frame.payload[6..]).ok()?;
        let is_ipv6 = data.protocol == ppp::IPV6;
        is_ipv6.then(|| nd::Packet::parse(data.payload).ok())?
    });
    let advertisements = packets.filter_map(|packet| match packet.message {
        Message::RouterAdvertisement(advertisement) => Some(advertisement),
        _ => None,
    });
    advertisements.collect()
}

/// Times in the Router Advertisement that the first home gets.
pub fn advertised(w: &mut World) -> String {
    dial(w);
    let all = advertisements(w);
    let first = all.first().expect("a Router Advertisement");
    let prefix = first.options.iter().find_map(|option| match option {
        Opt::Prefix(prefix) => Some(prefix),
        _ => None,
    });
    let prefix = prefix.expect("a prefix");
    format!(
        "router {} valid {} preferred {}.",
        first.router_lifetime, prefix.valid_lifetime, prefix.preferred_lifetime
    )
}

/// How often the first home gets a Router Advertisement.
pub fn advertised_often(w: &mut World) -> String {
    dial(w);
    w.run(120 * SECOND);
    w.heard.clear();
    w.run(240 * SECOND);
    match advertisements(w).len() {
        0..2 => "hardly ever",
        2..20 => "seldom",
        _ => "often",
    }
    .into()
}
