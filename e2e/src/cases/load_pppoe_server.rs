use crate::fixture::Fixture;
use crate::load_tool::LoadTool;
use crate::pppoe_server::{PASSWORD, PppoeServer, VLAN};
use anyhow::{Result, ensure};

const HOMES: u16 = 6;
/// What pppd logs of a subscriber whose CHAP response is right, and of one whose is wrong.
const ACCEPTED: &str = "sent \\[CHAP Success";
const REJECTED: &str = "sent \\[CHAP Failure";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, vm) = fixture.machine()?;
    let server = PppoeServer::start(vm, HOMES)?;
    let line = format!("--vlan {VLAN} --auth chap --rate 0.5");
    let tool = LoadTool::start(
        lab,
        &format!(
            "{line} --homes {HOMES} --password {PASSWORD} --duration 25 --pps 40 --flap 0.2 --flap-how terminate"
        ),
    )?;
    let (passed, report) = tool.finish()?;
    ensure!(passed, "the exit status is not 0");
    let (set_ups, flaps) = (report.number("/set_ups/count")?, report.number("/flaps")?);
    ensure!(
        report.number("/online")? == u64::from(HOMES) && set_ups == u64::from(HOMES) + flaps,
        "{set_ups} set-ups after {flaps} flaps"
    );
    ensure!(flaps > 0, "no home has left");
    for family in ["ipv4", "ipv6"] {
        let of = |what| report.number(&format!("/traffic/{family}/{what}"));
        let (sent, received) = (of("sent")?, of("received")?);
        ensure!(
            sent > 100 && received == sent,
            "{family}: {received} of {sent} packets came from home to home"
        );
    }
    server.wait_empty()?;
    let accepted = server.said(ACCEPTED)?;
    ensure!(
        accepted == set_ups,
        "pppd has accepted {accepted} of {set_ups}"
    );

    let wrong = format!("{line} --homes 1 --password wrong --duration 1 --pps 0 --redial 120");
    let mut tool = LoadTool::start(lab, &wrong)?;
    tool.wait_said("1 failure")?;
    tool.interrupt()?;
    let (passed, report) = tool.finish()?;
    ensure!(
        !passed && report.failures("authentication failed") == 1,
        "a wrong password is no failure: {report:?}"
    );
    ensure!(server.said(REJECTED)? == 1, "pppd has rejected nobody");
    server.wait_empty()?;
    server.stop()
}
