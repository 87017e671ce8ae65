//! The network behind a home's router: a host on it, and the DHCPv6 clients that ask for its prefix.

use crate::guard::PATIENCE;
use crate::home::Home;
use anyhow::{Context, Result, bail, ensure};
use std::net::Ipv6Addr;
use std::time::Duration;

/// A DHCPv6 client of Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// dhcpcd.
    Dhcpcd,
    /// WIDE's dhcp6c.
    Wide,
}

impl Client {
    const fn program(self) -> &'static str {
        match self {
            Client::Dhcpcd => "dhcpcd",
            Client::Wide => "dhcp6c",
        }
    }

    /// How it is started on `ppp0` with a configuration file: in the foreground.
    fn command(self, file: &str) -> String {
        match self {
            Client::Dhcpcd => format!("dhcpcd -B -d -f {file} -c /bin/true ppp0"),
            Client::Wide => format!("dhcp6c -f -D -c {file} -p {file}.pid ppp0"),
        }
    }

    /// An address for the router, and a prefix of which the network on `lan0` gets the first /64.
    const fn configuration(self) -> &'static str {
        match self {
            Client::Dhcpcd => {
                "duid
ipv6only
noipv6rs
option dhcp6_name_servers
interface ppp0
    ia_na 1
    ia_pd 2 lan0/0
"
            }
            Client::Wide => {
                "interface ppp0 {
    send ia-na 1;
    send ia-pd 2;
    request domain-name-servers;
};
id-assoc na 1 { };
id-assoc pd 2 {
    prefix-interface lan0 { sla-id 0; sla-len 8; };
};
"
            }
        }
    }

    /// The signal upon which it gives its leases back.
    const fn release(self) -> &'static str {
        match self {
            Client::Dhcpcd => "ALRM",
            Client::Wide => "TERM",
        }
    }
}

/// A home's network with one host.
pub struct Lan<'h, 'v> {
    home: &'h Home<'v>,
    client: Client,
}

impl<'h, 'v> Lan<'h, 'v> {
    /// Lays the network. The home forwards, and takes Router Advertisements nevertheless.
    pub fn build(home: &'h Home<'v>, client: Client) -> Result<Self> {
        let lan = Lan { home, client };
        let (name, host) = (home.name(), lan.host());
        home.machine().must(&format!(
            "set -e
             ip netns add {host}
             ip link add lan{name} type veth peer name host{name}
             ip link set lan{name} netns {name} name lan0
             ip link set host{name} netns {host} name host0
             ip netns exec {name} sh -c 'cd /proc/sys/net/ipv6/conf; echo 1 > all/forwarding; echo 2 > default/accept_ra'
             ip -n {host} link set lo up
             ip -n {name} link set lan0 up
             ip -n {host} link set host0 up"
        ))?;
        Ok(lan)
    }

    /// Namespace of the host.
    fn host(&self) -> String {
        format!("{}lan", self.home.name())
    }

    fn file(&self) -> String {
        format!("/run/{}.{}", self.home.name(), self.client.program())
    }

    /// Starts the client on the home's `ppp0`.
    pub fn ask(&self) -> Result<()> {
        let (file, name) = (self.file(), self.home.name());
        let (text, command) = (self.client.configuration(), self.client.command(&file));
        self.home.machine().must(&format!(
            "cat > {file} << 'END'\n{text}END
             ( /usr/sbin/ip netns exec {name} {command} > {file}.log 2>&1 & )"
        ))?;
        Ok(())
    }

    /// What the client logged.
    pub fn log(&self) -> Result<String> {
        self.home
            .machine()
            .must(&format!("cat {}.log", self.file()))
    }

    /// Waits until `lan0` has an address, which is the router's on its network.
    pub fn wait(&self) -> Result<Ipv6Addr> {
        let show = "ip -6 -o addr show dev lan0 scope global -tentative";
        let done = self.home.run(
            &format!(
                "for i in $(seq 100); do {show} | grep -q inet6 && break; usleep 100000; done; {show}"
            ),
            PATIENCE,
        )?;
        let mut words = done.output.split_whitespace().skip_while(|w| *w != "inet6");
        let address = words.nth(1).and_then(|word| word.split('/').next());
        let address = address.and_then(|word| word.parse().ok());
        address.with_context(|| {
            format!(
                "lan0 got no address: {}\n{}",
                done.output,
                self.log().unwrap_or_default()
            )
        })
    }

    /// Waits until the router has an address.
    pub fn wait_address(&self, address: &str) -> Result<()> {
        let has = format!("ip -6 -o addr show scope global | grep -q ' {address}/'");
        let wait = format!("for i in $(seq 100); do {has} && exit 0; usleep 100000; done; exit 1");
        let done = self.home.run(&wait, PATIENCE)?;
        ensure!(
            done.status == 0,
            "the router does not get {address}\n{}",
            self.log().unwrap_or_default()
        );
        Ok(())
    }

    /// Gives the host an address and the router as its way out.
    pub fn settle_host(&self, address: Ipv6Addr, router: Ipv6Addr) -> Result<()> {
        let host = self.host();
        self.home.machine().must(&format!(
            "set -e
             ip -n {host} addr add {address}/64 dev host0 nodad
             ip -n {host} -6 route add default via {router}"
        ))?;
        Ok(())
    }

    /// The host reaches an address: three pings in a row are answered.
    pub fn reach(&self, address: &str) -> Result<()> {
        let host = self.host();
        self.home
            .machine()
            .run(
                &format!(
                    "for n in $(seq 20); do
                         ip netns exec {host} ping -c 3 -W 1 {address} | grep ' 0% packet loss' && exit 0
                     done; exit 1"
                ),
                PATIENCE,
            )
            .and_then(|done| match done.status {
                0 => Ok(()),
                _ => bail!("the host behind the home does not reach {address}: {}", done.output),
            })
    }

    /// The client gives its leases back and ends.
    pub fn give_back(&self) -> Result<()> {
        let (signal, program) = (self.client.release(), self.client.program());
        self.home.machine().must(&format!(
            "killall -{signal} {program}; for i in $(seq 100); do pidof {program} > /dev/null || exit 0; usleep 100000; done; exit 1"
        ))?;
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    }
}
