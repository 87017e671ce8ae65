use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6};

/// What tshark says of a message that it cannot make sense of. An element of an enterprise that it does not know, as
/// our own are, is none of it.
const COMPLAINTS: &str = "_ws.malformed || _ws.unreassembled || _ws.expert.severity >= 0x600000 \
    || pfcp.ie_data_not_decoded || pfcp.ie_not_decoded_null || pfcp.ie_not_decoded || pfcp.ie_encoding_error \
    || pfcp.ie_id_reserved";

/// Our own element with the rules of a subscriber, by its number.
const FILTER_RULES: u16 = 0x800b;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    // A fresh pair of daemons, so that the association and the default session are seen too.
    fixture.without_site()?;
    let capture = Capture::between_planes(fixture.lab(), "management")?;
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("heidi", "filtered")?;
    home.wait_ipv6()?;
    home.ping(&INTERNET_V4.to_string(), 2)?;
    home.ping(&INTERNET_V6.to_string(), 2)?;
    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    let file = capture.finish()?;

    // Association, establishment, modification and deletion, each with its answer; control packets both ways.
    let kinds = tshark(&file, "pfcp", &["pfcp.msg_type"])?;
    for (kind, what) in [
        ("5", "Association Setup Request"),
        ("6", "Association Setup Response"),
        ("50", "Session Establishment Request"),
        ("51", "Session Establishment Response"),
        ("52", "Session Modification Request"),
        ("53", "Session Modification Response"),
        ("54", "Session Deletion Request"),
        ("55", "Session Deletion Response"),
    ] {
        // several messages may share a datagram
        let mut seen = kinds.iter().flat_map(|seen| seen.split(','));
        let seen = seen.any(|seen| seen == kind);
        ensure!(seen, "no {what} on the management link");
    }
    for (from, what) in [("192.0.2.1", "down"), ("192.0.2.2", "up")] {
        let seen = tshark(
            &file,
            &format!("gtp.message == 0xff && ip.src == {from} && pppoes && (chap || ipcp || lcp)"),
            &["frame.number"],
        )?;
        ensure!(
            seen.len() >= 4,
            "only {} control packets {what} by GTP-U",
            seen.len()
        );
    }
    let rules = tshark(
        &file,
        &format!("pfcp.enterprise_ie == {FILTER_RULES}"),
        &["frame.number"],
    )?;
    ensure!(
        !rules.is_empty(),
        "no rules of the subscriber on the management link"
    );
    let refused = tshark(
        &file,
        "pfcp.cause && pfcp.cause != 1",
        &["frame.number", "pfcp.cause"],
    )?;
    ensure!(refused.is_empty(), "refused: {refused:?}");
    let wrong = tshark(
        &file,
        &format!("(pfcp || gtp) && ({COMPLAINTS})"),
        &["frame.number", "_ws.col.Info", "_ws.expert.message"],
    )?;
    ensure!(wrong.is_empty(), "tshark complains:\n{}", wrong.join("\n"));
    Ok(())
}
