use crate::fixture::Fixture;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::Place;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let (one, two) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    let capture = Capture::start(stage.lab, Place::Access(UP), "vm0", "between-subscribers")?;
    one.dial("alice", "wonderland")?;
    let granted = two.dial("bob", "builder")?;
    one.wait_ipv6()?;
    let address = two.wait_ipv6()?;
    // A hop limit that fell by one shows the one router in between.
    let said = one.ping(&granted.local.to_string(), 3)?;
    ensure!(said.matches("ttl=63").count() == 3, "{said}");
    let said = one.ping(&address.to_string(), 3)?;
    ensure!(said.matches("ttl=63").count() == 3, "{said}");

    let (up, down) = (
        stage.site.session_of(7)?.traffic.unwrap_or_default(),
        stage.site.session_of(8)?.traffic.unwrap_or_default(),
    );
    ensure!(
        up.up_packets >= 6 && down.down_packets >= 6,
        "not counted on both sides: {up:?} {down:?}"
    );
    // On the wire no frame goes from one home to the other: the gateway is an end of each.
    let file = capture.finish()?;
    let (a, b) = (one.mac(), two.mac());
    let direct = tshark(
        &file,
        &format!("(eth.src == {a} && eth.dst == {b}) || (eth.src == {b} && eth.dst == {a})"),
        &["frame.number"],
    )?;
    ensure!(direct.is_empty(), "frames {direct:?} went directly");
    let pings = tshark(
        &file,
        "pppoes && (icmp.type == 8 || icmpv6.type == 128)",
        &["eth.src", "eth.dst"],
    )?;
    ensure!(
        pings.len() == 12,
        "each of 6 pings passes the access line twice, seen: {pings:?}"
    );
    one.hang_up()?;
    two.hang_up()
}
