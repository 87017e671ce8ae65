use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{INTERNET_V4, Lab, Place};
use std::net::TcpStream;

/// Where the portal listens, on the internet host.
const PORT: u16 = 8080;
/// Servers that nobody has: only the gateway answers in their names.
const SERVERS: [&str; 2] = ["203.0.113.77", "2001:db8:ffff::77"];
/// What the portal says.
const PAGE: &str = "please pay";
/// What an edit of the configuration does not say: where to.
const NOWHERE: &str = "set acls walled-up rules 20 redirect tcp from any to any 80\nset policies walled-up acls walled-up";
const PROFILE: &str = "subscriber-profiles standard";

/// Linux's TCP and busybox' nc in a home that has not paid, and a web server that is the portal.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let sluice = stage.site.sluice();
    let _portal = portal(stage.lab)?;
    // at the other end of the access link: what the gateway sends through AF_XDP passes no capture at its own
    let capture = Capture::start(stage.lab, Place::Access(UP), "access", "redirect")?;
    let refused = sluice.configure(NOWHERE).err();
    let refused = format!(
        "{:#}",
        refused.context("a rule that leads nowhere was taken")?
    );
    ensure!(refused.contains("add `portal`"), "{refused}");
    sluice.configure(&walls())?;
    let outcome = behind_walls(&stage);
    sluice.configure(&format!(
        "delete {PROFILE} policy-up\ndelete {PROFILE} policy-down\ndelete policies walled-up\ndelete policies walled-down
         delete acls walled-up\ndelete acls walled-down"
    ))?;
    let home = outcome?;
    // It has paid: nobody answers any more in the name of a server that there is not.
    let silent = ask(&home, SERVERS[0], 80)?;
    ensure!(silent.is_empty(), "still led to the portal: {silent}");
    home.hang_up()?;
    judge(capture)
}

/// The policies of a home that has not paid: it reaches the portal alone, and nothing else reaches it.
fn walls() -> String {
    format!(
        "{NOWHERE}
         set acls walled-up rules 10 permit tcp from any to {INTERNET_V4} {PORT}
         set policies walled-up portal http://{INTERNET_V4}:{PORT}/
         set acls walled-down rules 10 permit tcp from {INTERNET_V4} {PORT} to any
         set policies walled-down acls walled-down
         set {PROFILE} policy-up walled-up
         set {PROFILE} policy-down walled-down"
    )
}

/// Asks servers of both families for a page, and gets that of the portal.
fn behind_walls<'s>(stage: &Stage<'s>) -> Result<Home<'s>> {
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    home.wait_ipv6()?;
    for server in SERVERS {
        for _ in 0..3 {
            let answer = ask(&home, server, 80)?;
            let led = format!("Location: http://{INTERNET_V4}:{PORT}/");
            ensure!(answer.contains(&led), "{server} answers {answer:?}");
        }
    }
    let page = ask(&home, &INTERNET_V4.to_string(), PORT)?;
    ensure!(page.contains(PAGE), "the portal answers {page:?}");
    let denied = ask(&home, SERVERS[0], 25)?;
    ensure!(denied.is_empty(), "another port is answered: {denied}");
    let drops = stage.site.drops()?;
    ensure!(drops.count("denied-up")? > 0, "nothing was denied");
    Ok(home)
}

/// What a server answers to a request for a page; nothing if there is no connection.
fn ask(home: &Home<'_>, server: &str, port: u16) -> Result<String> {
    let request = "GET /news?of=today HTTP/1.1\\r\\nHost: news.example\\r\\n\\r\\n";
    let command = format!("printf \"{request}\" | timeout 5 nc -w 3 {server} {port} 2> /dev/null");
    Ok(home.run(&command, PATIENCE)?.output.trim().to_owned())
}

/// tshark finds nothing wrong with what the gateway said in the servers' names.
fn judge(capture: Capture) -> Result<()> {
    let file = capture.finish()?;
    let sums = "tcp.checksum.status == Bad || ip.checksum.status == Bad";
    let wrong = format!("tcp.srcport == 80 && ({sums} || _ws.malformed || tcp.flags.reset == 1)");
    let wrong = tshark(&file, &wrong, &["frame.number"])?;
    ensure!(wrong.is_empty(), "not as TCP should be: frames {wrong:?}");
    let led = tshark(&file, "http.response.code == 302", &["http.location"])?;
    ensure!(led.len() >= 6, "tshark sees {} of 6 responses", led.len());
    let to = format!("http://{INTERNET_V4}:{PORT}/");
    ensure!(
        led.iter().all(|location| *location == to),
        "they lead to {led:?}"
    );
    Ok(())
}

/// The portal: Python's web server on the internet host.
fn portal(lab: &Lab) -> Result<Process> {
    let script = format!(
        "from http.server import BaseHTTPRequestHandler, HTTPServer
class Portal(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{PAGE}')
HTTPServer(('{INTERNET_V4}', {PORT}), Portal).serve_forever()
"
    );
    let internet = lab.netns(Place::Internet);
    let mut command = internet.command("/usr/bin/python3");
    command.args(["-c", &script]);
    let mut portal = Process::spawn(lab.dir(), "portal", command)?;
    portal.wait_until("listening", PATIENCE, || {
        let connected = internet.within(|| TcpStream::connect((INTERNET_V4, PORT)));
        connected.is_ok_and(|connected| connected.is_ok())
    })?;
    Ok(portal)
}
