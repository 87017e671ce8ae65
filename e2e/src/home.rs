//! A home in the virtual machine: its own line (QinQ), its own network namespace, and Linux's own pppd.

use crate::guard::PATIENCE;
use crate::vm::{Done, Vm};
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// The S-tag of every home.
pub const S_TAG: u16 = 100;

/// A home on a line of its own.
pub struct Home<'v> {
    vm: &'v Vm,
    c_tag: u16,
}

/// Octets that the interface `ppp0` counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Sent by the home.
    pub sent: u64,
    /// Received by the home.
    pub received: u64,
}

/// What pppd passed to `ip-up`.
#[derive(Debug)]
pub struct Granted {
    /// The home's address.
    pub local: Ipv4Addr,
    /// The gateway's.
    pub remote: Ipv4Addr,
    /// Name servers.
    pub dns: Vec<String>,
    /// The gateway's MAC address.
    pub gateway_mac: String,
}

/// Takes every home out of the machine.
pub fn evict(vm: &Vm) -> Result<()> {
    let rest = "killall -q -TERM pppoe-server radvd pppd iperf3 ping dhcpcd dhcp6c; for i in $(seq 50); do pidof pppd > /dev/null || break; usleep 100000; done
        killall -q -KILL pppd
        for home in $(ip netns list | cut -d ' ' -f 1); do ip netns del $home; done
        for link in /sys/class/net/tag*; do [ -e $link ] && ip link del $(basename $link); done
        rm -f /run/h*";
    let done = vm.run(rest, PATIENCE)?;
    if done.status != 0 {
        bail!(
            "the homes could not be taken out of the virtual machine: {}",
            done.output
        );
    }
    Ok(())
}

/// What pppd said in every home.
pub fn logs(vm: &Vm) -> Result<String> {
    vm.must("for log in /run/h*.log; do echo \"$log:\"; cat $log; done")
}

impl<'v> Home<'v> {
    /// Lays a line with tags [`S_TAG`] and `c_tag` to a new home.
    pub fn build(vm: &'v Vm, c_tag: u16) -> Result<Self> {
        let home = Home { vm, c_tag };
        let (name, mac) = (home.name(), home.mac());
        vm.must(&format!(
            "set -e
             ip link show eth0.{S_TAG} > /dev/null 2>&1 || ip link add link eth0 name eth0.{S_TAG} type vlan id {S_TAG}
             echo 1 > /proc/sys/net/ipv6/conf/eth0.{S_TAG}/disable_ipv6
             ip link set eth0.{S_TAG} up
             ip netns add {name}
             ip link add link eth0.{S_TAG} name line{c_tag} type vlan id {c_tag}
             ip link set line{c_tag} netns {name} address {mac}
             ip netns exec {name} sh -c 'echo 1 > /proc/sys/net/ipv6/conf/line{c_tag}/disable_ipv6'
             ip -n {name} link set lo up
             ip -n {name} link set line{c_tag} up"
        ))?;
        Ok(home)
    }

    /// Lays a line with these tags, the outer one first: each a protocol of `ip link` and a VLAN id. `number` names the home, and need not
    /// be among the tags.
    pub fn build_with(vm: &'v Vm, number: u16, tags: &[(&str, u16)]) -> Result<Self> {
        Self::build_on(vm, number, "eth0", tags)
    }

    /// The same, with the line on this interface of the machine.
    pub fn build_on(vm: &'v Vm, number: u16, below: &str, tags: &[(&str, u16)]) -> Result<Self> {
        let home = Home { vm, c_tag: number };
        let (name, mac) = (home.name(), home.mac());
        let mut below = below.to_owned();
        let mut links = String::new();
        for (depth, (protocol, vid)) in tags.iter().enumerate() {
            let link = match depth + 1 == tags.len() {
                true => format!("line{number}"),
                false => format!("tag{number}"),
            };
            links.push_str(&format!(
                "ip link add link {below} name {link} type vlan proto {protocol} id {vid}
                 echo 1 > /proc/sys/net/ipv6/conf/{link}/disable_ipv6
                 ip link set {link} up
                "
            ));
            below = link;
        }
        vm.must(&format!(
            "set -e
             {links}
             ip netns add {name}
             ip link set line{number} netns {name} address {mac}
             ip -n {name} link set lo up
             ip -n {name} link set line{number} up"
        ))?;
        Ok(home)
    }

    /// The home that was built on this line.
    pub fn at(vm: &'v Vm, c_tag: u16) -> Self {
        Home { vm, c_tag }
    }

    /// The machine that it is in.
    pub fn machine(&self) -> &'v Vm {
        self.vm
    }

    /// Its inner tag.
    pub fn c_tag(&self) -> u16 {
        self.c_tag
    }

    /// Its namespace in the machine, also the word that tells its pppd's files apart.
    pub fn name(&self) -> String {
        format!("h{}", self.c_tag)
    }

    /// The MAC address of its line.
    pub fn mac(&self) -> String {
        format!(
            "02:00:00:00:{:02x}:{:02x}",
            self.c_tag >> 8,
            self.c_tag & 0xff
        )
    }

    /// Runs a shell command in the home.
    pub fn run(&self, command: &str, limit: Duration) -> Result<Done> {
        let quoted = command.replace('\'', r"'\''");
        self.vm.run(
            &format!(
                "ip netns exec {} sh -c '. /prologue; {quoted}'",
                self.name()
            ),
            limit,
        )
    }

    /// Runs a short command in the home that must succeed.
    pub fn must(&self, command: &str) -> Result<String> {
        let done = self.run(command, PATIENCE)?;
        if done.status != 0 {
            bail!(
                "in home {}: `{command}` ended with {}: {}",
                self.c_tag,
                done.status,
                done.output.trim()
            );
        }
        Ok(done.output)
    }

    /// Starts pppd and leaves it to itself.
    pub fn start_pppd(&self, user: &str, password: &str) -> Result<()> {
        self.start_pppd_with(user, password, "lcp-echo-interval 5 lcp-echo-failure 8")
    }

    /// Starts pppd with these options beside the usual ones.
    pub fn start_pppd_with(&self, user: &str, password: &str, options: &str) -> Result<()> {
        let (name, c_tag) = (self.name(), self.c_tag);
        self.vm.must(&format!(
            "rm -f /run/{name}.*
             ( /usr/sbin/ip netns exec {name} pppd plugin rp-pppoe.so nic-line{c_tag} user '{user}' password '{password}' \
                 noauth nodetach debug usepeerdns defaultroute +ipv6 {options} \
                 ipparam {name} > /run/{name}.log 2>&1 &
               echo $! > /run/{name}.pid; wait $!; echo $? > /run/{name}.exit ) &"
        ))?;
        Ok(())
    }

    /// Dials in and waits for IPv4.
    pub fn dial(&self, user: &str, password: &str) -> Result<Granted> {
        self.start_pppd(user, password)?;
        self.wait_online()
    }

    /// Waits for IPv4.
    pub fn wait_online(&self) -> Result<Granted> {
        let name = self.name();
        let start = Instant::now();
        loop {
            let state = self.vm.must(&format!(
                "for i in $(seq 20); do [ -f /run/{name}.up ] || [ -f /run/{name}.exit ] && break; usleep 50000; done
                 cat /run/{name}.up /run/{name}.exit 2>/dev/null; true"
            ))?;
            if state.contains("IPLOCAL=") {
                return Granted::parse(&state);
            }
            if !state.trim().is_empty() || start.elapsed() > PATIENCE {
                bail!(
                    "home {} did not get online; pppd says\n{}",
                    self.c_tag,
                    self.log()?
                );
            }
        }
    }

    /// What pppd logged.
    pub fn log(&self) -> Result<String> {
        self.vm.must(&format!("cat /run/{}.log", self.name()))
    }

    /// Waits for pppd to end; its exit status.
    pub fn wait_exit(&self, limit: Duration) -> Result<i32> {
        let name = self.name();
        let done = self.vm.run(
            &format!("until [ -s /run/{name}.exit ]; do usleep 50000; done; cat /run/{name}.exit"),
            limit,
        )?;
        let status = done.output.trim().parse();
        status.with_context(|| {
            format!(
                "pppd of home {} still runs after {limit:?}\n{:?}",
                self.c_tag,
                self.log()
            )
        })
    }

    /// Hangs up as a user does and waits until pppd has ended.
    pub fn hang_up(&self) -> Result<()> {
        self.vm
            .must(&format!("kill -TERM $(cat /run/{}.pid)", self.name()))?;
        self.wait_exit(PATIENCE).map(drop)
    }

    /// Waits for an address from the /64 of a Router Advertisement.
    pub fn wait_ipv6(&self) -> Result<Ipv6Addr> {
        let done = self.run(
            "for i in $(seq 100); do
                 ip -6 route show default | grep -q ppp0 && ip -6 -o addr show dev ppp0 scope global | grep -q inet6 && break
                 usleep 100000
             done
             ip -6 -o addr show dev ppp0 scope global",
            PATIENCE,
        )?;
        let address = done
            .output
            .split_whitespace()
            .skip_while(|word| *word != "inet6")
            .nth(1);
        let address = address
            .and_then(|word| word.split('/').next())
            .and_then(|word| word.parse().ok());
        address.with_context(|| {
            format!(
                "home {} has no IPv6 address: {}\n{}",
                self.c_tag,
                done.output,
                self.log().unwrap_or_default()
            )
        })
    }

    /// Pings `count` times; an error unless all are answered. What ping printed.
    pub fn ping(&self, address: &str, count: u32) -> Result<String> {
        let output = self.must(&format!("ping -c {count} -i 0.2 -W 2 {address}"))?;
        if !output.contains(&format!("{count} packets received")) {
            bail!(
                "home {}: not every ping was answered: {}",
                self.c_tag,
                output.trim()
            );
        }
        Ok(output)
    }

    /// Pings an address until it answers. Who is the first on a way loses packets until a neighbour's MAC address is known.
    pub fn reach(&self, address: &str) -> Result<()> {
        let pings =
            format!("for n in $(seq 10); do ping -c 1 -W 1 {address} && exit 0; done; exit 1");
        self.must(&pings).map(drop)
    }

    /// Pings an address from now on, five times a second.
    pub fn start_ping(&self, address: &str) -> Result<()> {
        let name = self.name();
        self.vm
            .must(&format!(
                "( /usr/sbin/ip netns exec {name} ping -i 0.2 {address} > /run/{name}.ping 2>&1 & )"
            ))
            .map(drop)
    }

    /// pppd has not ended, and pings are answered now.
    pub fn still_online(&self) -> Result<()> {
        let name = self.name();
        let state = self.vm.must(&format!(
            "cat /run/{name}.exit 2>/dev/null; before=$(wc -l < /run/{name}.ping); sleep 1
             after=$(wc -l < /run/{name}.ping); [ $after -gt $before ] && echo answered; true"
        ))?;
        if state.trim() != "answered" {
            bail!(
                "home {} is not online any more: {state:?}; pppd says\n{}",
                self.c_tag,
                self.log()?
            );
        }
        Ok(())
    }

    /// What `ppp0` has counted so far.
    pub fn counted(&self) -> Result<Counted> {
        let text = self.must(
            "cat /sys/class/net/ppp0/statistics/tx_bytes /sys/class/net/ppp0/statistics/rx_bytes",
        )?;
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
        let (sent, received) = (numbers.next(), numbers.next());
        Ok(Counted {
            sent: sent.context("no tx_bytes")?,
            received: received.context("no rx_bytes")?,
        })
    }
}

impl Granted {
    fn parse(environment: &str) -> Result<Self> {
        let value = |name: &str| {
            let mut lines = environment.lines().filter_map(|line| line.split_once('='));
            lines
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        let must = |name: &str| {
            value(name).with_context(|| format!("pppd passed no {name}:\n{environment}"))
        };
        Ok(Granted {
            local: must("IPLOCAL")?.parse()?,
            remote: must("IPREMOTE")?.parse()?,
            dns: ["DNS1", "DNS2"].into_iter().filter_map(value).collect(),
            gateway_mac: must("MACREMOTE")?.to_lowercase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_ip_up_is_read() {
        let text = "DNS1=192.0.2.53\nDNS2=192.0.2.54\nIPLOCAL=100.64.0.2\nIPREMOTE=100.64.0.1\nMACREMOTE=02:AA:00:00:00:01\n";
        let granted = Granted::parse(text).unwrap();
        assert_eq!(granted.local, Ipv4Addr::new(100, 64, 0, 2));
        assert_eq!(granted.gateway_mac, "02:aa:00:00:00:01");
        assert!(Granted::parse("IPLOCAL=100.64.0.2").is_err());
    }
}
