//! DPDK's own testpmd as a peer: `mac` forwarding over a ring, the least that anybody does with a packet.
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// TSC cycles a packet over half a second, on core `core`; 512 packets of 64 octets circulate in bursts of 64.
pub fn mac(core: usize) -> Result<f64> {
    let main = if core == 0 { 1 } else { 0 };
    let cores = format!("--lcores={main},{core}");
    let eal = [
        "--no-pci",
        "--in-memory",
        "--no-telemetry",
        "-m",
        "64",
        "--vdev=net_ring0",
    ];
    let own = [
        "-i",
        "--burst=64",
        "--total-num-mbufs=2048",
        "--record-core-cycles",
        "--forward-mode=mac",
    ];
    let mut child = Command::new("dpdk-testpmd")
        .arg(cores)
        .arg(format!("--main-lcore={main}"))
        .args(eal)
        .arg("--")
        .args(own)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("dpdk-testpmd (Debian's package dpdk-dev)")?;
    let mut stdin = child.stdin.take().context("its input")?;
    writeln!(stdin, "start tx_first 8")?;
    std::thread::sleep(Duration::from_millis(900));
    writeln!(stdin, "stop\nquit")?;
    drop(stdin);
    let said = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&said.stdout);
    match cycles(&said) {
        Some(cycles) => Ok(cycles),
        None => bail!("dpdk-testpmd did not say its cycles a packet:\n{said}"),
    }
}

fn cycles(said: &str) -> Option<f64> {
    let (_, after) = said.rsplit_once("CPU cycles/packet=")?;
    after.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_figure_counts() {
        let said = "CPU cycles/packet=9.1 (total\n CPU cycles/packet=13.83 (total cycles=1 / total mac packets=2)";
        assert_eq!(super::cycles(said), Some(13.83));
        assert_eq!(super::cycles("none"), None);
    }
}
