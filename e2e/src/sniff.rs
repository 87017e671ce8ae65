//! Captures by tcpdump, in classic pcap.

use crate::guard::PATIENCE;
use crate::site::UP;
use anyhow::{Context, Result, bail};
use lab::process::Process;
use lab::topology::{Lab, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A running tcpdump.
pub struct Capture {
    process: Process,
    file: PathBuf,
}

impl Capture {
    /// Captures everything that passes an interface, both ways and with every tag.
    pub fn start(lab: &Lab, place: Place, interface: &str, name: &str) -> Result<Self> {
        Self::of(lab, place, interface, name, "")
    }

    /// Captures what the control plane and the first user plane say to each other, datagram by datagram: here as on a wire,
    /// what they send as one buffer is cut up before it leaves.
    pub fn between_planes(lab: &Lab, name: &str) -> Result<Self> {
        let link = UP.management_link();
        for (place, end) in [(Place::ControlPlane, link), (Place::UserPlane(UP), "mgmt0")] {
            let netns = lab.netns(place);
            netns.run(&["ethtool", "-K", end, "tx-udp-segmentation", "off"])?;
        }
        Self::start(lab, Place::ControlPlane, link, name)
    }

    /// Captures what matches an expression of pcap.
    pub fn of(
        lab: &Lab,
        place: Place,
        interface: &str,
        name: &str,
        expression: &str,
    ) -> Result<Self> {
        let file = lab.dir().join(format!("{name}.pcap"));
        let mut command = lab.netns(place).command("tcpdump");
        command
            .args([
                "--immediate-mode",
                "-i",
                interface,
                // A slot of the buffer is as large as the longest frame: for a burst there must be many.
                "-s",
                "4096",
                "-B",
                "65536",
                "-U",
                "-Z",
                "root",
                "-w",
            ])
            .arg(&file)
            .arg(expression);
        let mut process = Process::spawn(lab.dir(), name, command)?;
        let log = process.log().to_owned();
        process.wait_until("listening", PATIENCE, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("listening on"))
        })?;
        Ok(Capture { process, file })
    }

    /// When the first frame passed after `since`, in what was captured so far.
    pub fn first_after(&self, since: SystemTime) -> Result<Option<SystemTime>> {
        let octets = std::fs::read(&self.file)?;
        let mut rest = octets.get(24..).unwrap_or_default();
        let word = |at: &[u8]| Some(u32::from_le_bytes(at.first_chunk::<4>().copied()?));
        while let (Some(seconds), Some(micros), Some(length)) = (
            word(rest),
            rest.get(4..).and_then(word),
            rest.get(8..).and_then(word),
        ) {
            let at = UNIX_EPOCH + Duration::new(seconds.into(), micros * 1000);
            if at > since {
                return Ok(Some(at));
            }
            rest = rest.get(16 + length as usize..).unwrap_or_default();
        }
        Ok(None)
    }

    /// Ends it; the file.
    pub fn finish(mut self) -> Result<PathBuf> {
        // What is under way in the kernel's buffer is written before tcpdump ends.
        std::thread::sleep(Duration::from_millis(300));
        kill(Pid::from_raw(self.process.id()), Signal::SIGINT)?;
        self.process.stop()?;
        let said = std::fs::read_to_string(self.process.log())?;
        if !said.contains("\n0 packets dropped by kernel") {
            bail!("the capture is not whole: {}", said.trim());
        }
        Ok(self.file.clone())
    }
}

/// Decodes a capture with Debian's tshark, what GTP-U carries as Ethernet, and checks the sums of headers; one line a packet, fields
/// separated by tabs.
pub fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .args(["-o", "gtp.dissect_tpdu_as:eth"])
        .args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
            "-r",
        ])
        .arg(file)
        .args(["-Y", filter, "-T", "fields"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let done = command.output().context("cannot run tshark")?;
    if !done.status.success() {
        bail!(
            "tshark failed: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout)
        .lines()
        .map(str::to_owned)
        .collect())
}
