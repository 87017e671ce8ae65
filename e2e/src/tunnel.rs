//! The network between the control plane and the first user plane as others own it: a switch with a stranger at it, and
//! machines that keep a tunnel through it.

use crate::guard::PATIENCE;
use crate::site::UP;
use anyhow::{Context, Result, bail, ensure};
use lab::netns::Netns;
use lab::topology::{Lab, Place, UserPlane};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where the switch and the stranger are; its user plane does not run.
const SWITCH: Place = Place::UserPlane(UserPlane::Two);
/// The switch's port of the control plane.
const PORT: &str = "to-cp";
/// The stranger's address.
const STRANGER: &str = "10.0.0.9";
/// Debian's daemon as the kernel calls it.
const DAEMON: &str = "wireguard-go";
/// How long the stranger waits for an answer. The peer itself has one after a millisecond.
const SILENCE: Duration = Duration::from_secs(1);

/// Makes folders of the machine's own out of those that all namespaces share, and does what systemd would do.
const MACHINE: &str = r#"set -e -o pipefail
mkdir -p /run/wireguard
mount --bind "$1/run" /run/wireguard
mount --bind "$1/etc" /etc/wireguard
mount --bind "$1/nftables.conf" /etc/nftables.conf
apt-get() { :; }
systemctl() {
    case "$*" in
    "enable --now wg-quick@wg0") wg-quick up wg0 ;;
    "reload wg-quick@wg0") wg syncconf wg0 <(wg-quick strip wg0) ;;
    "enable --now nftables") nft -f /etc/nftables.conf ;;
    *) echo "nobody knows how to do this here: systemctl $*" >&2; return 1 ;;
    esac
}
"#;

/// A plane's machine.
pub struct Machine<'l> {
    /// Its namespace.
    pub netns: &'l Netns,
    dir: PathBuf,
}

impl<'l> Machine<'l> {
    /// A machine without a tunnel.
    pub fn new(lab: &'l Lab, place: Place, name: &str) -> Result<Self> {
        let dir = lab.dir().join(name);
        for folder in ["run", "etc"] {
            fs::create_dir_all(dir.join(folder))?;
        }
        fs::write(dir.join("nftables.conf"), "")?;
        let netns = lab.netns(place);
        Ok(Machine { netns, dir })
    }

    /// Runs commands of a shell; what they print.
    pub fn run(&self, commands: &str) -> Result<String> {
        let mut command = self.netns.command("unshare");
        command
            .args(["--mount", "bash", "-c", &format!("{MACHINE}{commands}")])
            .arg("machine")
            .arg(&self.dir)
            .stdin(Stdio::null());
        let done = command.output().context("cannot run unshare")?;
        let [out, err] =
            [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(done.status.success(), "{commands}{out}{err}");
        Ok(out)
    }

    /// Writes the tunnel's configuration.
    pub fn configure(&self, text: &str) -> Result<()> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(self.dir.join("etc/wg0.conf"))?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// Writes the firewall's rules.
    pub fn set_firewall(&self, rules: &str) -> Result<()> {
        Ok(fs::write(self.dir.join("nftables.conf"), rules)?)
    }

    /// The private key that was made last.
    pub fn private_key(&self) -> Result<String> {
        let key = fs::read_to_string(self.dir.join("etc/wg0.key"))?;
        Ok(key.trim().to_owned())
    }

    /// How many packets the firewall has dropped, before and after the planes.
    pub fn dropped(&self) -> Result<[u64; 2]> {
        let count = |chain: &str| -> Result<u64> {
            let rules = self.run(&format!("nft list chain inet planes {chain}"))?;
            let mut words = rules
                .split_whitespace()
                .skip_while(|word| *word != "packets");
            let count = words.nth(1).context("nothing is counted")?;
            Ok(count.parse()?)
        };
        Ok([count("input")?, count("output")?])
    }

    /// Kills the tunnel's process with SIGKILL. The interface is gone when this returns.
    pub fn kill_tunnel(&self) -> Result<()> {
        let ids = self.daemons()?;
        ensure!(ids.len() == 1, "{} processes keep the tunnel", ids.len());
        for id in ids {
            kill(Pid::from_raw(id), Signal::SIGKILL)?;
        }
        let begun = Instant::now();
        while self.netns.run(&["ip", "link", "show", "wg0"]).is_ok() {
            ensure!(begun.elapsed() < PATIENCE, "the tunnel stays");
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn daemons(&self) -> Result<Vec<i32>> {
        let is_daemon = |id: &i32| {
            let name = fs::read_to_string(format!("/proc/{id}/comm"));
            name.is_ok_and(|name| name.trim() == DAEMON)
        };
        Ok(self
            .netns
            .processes()?
            .into_iter()
            .filter(is_daemon)
            .collect())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // Nothing can be reported from here.
        for id in self.daemons().unwrap_or_default() {
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
    }
}

/// The network between the planes.
pub struct Underlay<'l> {
    switch: &'l Netns,
}

impl<'l> Underlay<'l> {
    /// Replaces the management link of the first user plane: `eth1` of both machines is at the switch, with these addresses.
    pub fn build(lab: &'l Lab, addresses: [&str; 2]) -> Result<Self> {
        let switch = lab.netns(SWITCH);
        lab.netns(Place::ControlPlane)
            .ip(&format!("link del {}", UP.management_link()))?;
        switch.ip(&format!(
            "link add eth1 type bridge stp_state 0 mcast_snooping 0\n\
             link set eth1 up\naddr add {STRANGER}/24 dev eth1\n"
        ))?;
        let places = [Place::ControlPlane, Place::UserPlane(UP)];
        for ((place, port), address) in places.into_iter().zip([PORT, "to-up"]).zip(addresses) {
            let machine = lab.netns(place);
            switch.ip(&format!(
                "link add {port} type veth peer name eth1 netns {}\nlink set {port} master eth1 up\n",
                machine.name()
            ))?;
            machine.ip(&format!(
                "addr add {address}/24 dev eth1\nlink set eth1 up\n"
            ))?;
        }
        // What leaves the control plane without its tunnel comes to the stranger.
        lab.netns(Place::ControlPlane)
            .ip(&format!("route add default via {STRANGER}"))?;
        // The planes' addresses are those of the tunnel: the stranger sends there by way of the machines.
        let [cp, up] = addresses;
        switch.ip(&format!(
            "route add {}/32 via {cp}\nroute add {}/32 via {up}\n",
            UP.control_plane(),
            UP.management()
        ))?;
        Ok(Underlay { switch })
    }

    /// Where everything passes that the control plane sends and gets: a place and its interface.
    pub const fn tap(&self) -> (Place, &'static str) {
        (SWITCH, PORT)
    }

    /// The stranger sends what peers begin with to PFCP and GTP-U of these addresses; how many datagrams that were. An error if
    /// anything is answered.
    pub fn knock(&self, to: &[IpAddr]) -> Result<u64> {
        self.knock_from([0, 0, 0, 0].into(), to)
    }

    /// The same with the control plane's address as sender.
    pub fn knock_as_control_plane(&self, to: &[IpAddr]) -> Result<u64> {
        let forged = UP.control_plane();
        self.switch.ip(&format!(
            "route del {forged}/32\naddr add {forged}/32 dev lo\n"
        ))?;
        self.knock_from(forged, to)
    }

    fn knock_from(&self, from: IpAddr, to: &[IpAddr]) -> Result<u64> {
        let bind = |port: u16| UdpSocket::bind((from, port));
        let sockets = self.switch.within(|| -> Result<_> {
            Ok([(bind(8805)?, &PFCP[..]), (bind(2152)?, &GTP_U[..])])
        })??;
        let mut sent = 0;
        for (socket, messages) in &sockets {
            socket.set_read_timeout(Some(SILENCE))?;
            let port = socket.local_addr()?.port();
            for (&to, message) in to
                .iter()
                .flat_map(|to| messages.iter().map(move |m| (to, m)))
            {
                socket.send_to(message, SocketAddr::new(to, port))?;
                sent += 1;
            }
        }
        for (socket, _) in &sockets {
            match socket.recv_from(&mut [0; 2048]) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
                Ok((_, from)) => bail!("{from} answered the stranger"),
            }
        }
        Ok(sent)
    }
}

/// A Heartbeat Request, and an Association Setup Request with Node ID and Recovery Time Stamp (TS 29.244 §7.4).
const PFCP: [&[u8]; 2] = [
    b"\x20\x01\x00\x0c\x00\x00\x01\x00\x00\x60\x00\x04\xee\x00\x00\x01",
    b"\x20\x05\x00\x15\x00\x00\x02\x00\x00\x3c\x00\x05\x00\xc0\x00\x02\x01\x00\x60\x00\x04\xee\x00\x00\x01",
];
/// An Echo Request (TS 29.281 §7.2.1).
const GTP_U: [&[u8]; 1] = [b"\x32\x01\x00\x04\x00\x00\x00\x00\x00\x01\x00\x00"];
