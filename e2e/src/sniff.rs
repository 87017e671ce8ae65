//! Captures by tcpdump, in classic pcap.

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sluice::lab::process::Process;
use sluice::lab::topology::{Lab, Place};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running tcpdump.
pub struct Capture {
    process: Process,
    file: PathBuf,
}

impl Capture {
    /// Captures everything that passes an interface, both ways and with every tag.
    pub fn start(lab: &Lab, place: Place, interface: &str, name: &str) -> Result<Self> {
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
            .arg(&file);
        let mut process = Process::spawn(lab.dir(), name, command)?;
        let log = process.log().to_owned();
        process.wait_until("listening", Duration::from_secs(5), || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("listening on"))
        })?;
        Ok(Capture { process, file })
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

/// Decodes a capture with Debian's tshark, what GTP-U carries as Ethernet; one line a packet, fields separated by tabs.
pub fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .args(["-o", "gtp.dissect_tpdu_as:eth", "-r"])
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
