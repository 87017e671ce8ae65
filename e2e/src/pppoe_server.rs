//! Debian's pppoe-server (rp-pppoe) with pppd in the virtual machine: an access concentrator that shares no code with ours.

use crate::guard::PATIENCE;
use crate::vm::Vm;
use anyhow::{Context, Result, ensure};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The VLAN that it serves.
pub const VLAN: u16 = 300;
/// The password of its users.
pub const PASSWORD: &str = "peer-secret";
/// What every pppd of it says; emptied with the homes' logs.
const LOG: &str = "/run/hserver.log";

/// A server that runs until [`PppoeServer::stop`].
pub struct PppoeServer<'v>(&'v Vm);

impl<'v> PppoeServer<'v> {
    /// Starts it for `home1` and so on. Each subscriber gets an address of 10.67.0.0/16, and 2001:db8:N::/64 by radvd.
    pub fn start(vm: &'v Vm, homes: u16) -> Result<Self> {
        let secrets: String = (1..=homes)
            .map(|n| format!("home{n} * {PASSWORD} *\n"))
            .collect();
        vm.must(&format!(
            "set -e
cat > /etc/ppp/pppoe-server-options << 'END'
require-chap
+ipv6
ms-dns 10.67.0.53
noccp
nobsdcomp
nodeflate
lcp-echo-interval 10
lcp-echo-failure 3
debug
logfile {LOG}
END
cat > /etc/ppp/chap-secrets << 'END'
{secrets}END
chmod 600 /etc/ppp/chap-secrets
cat > /etc/ppp/ipv6-up << 'END'
#!/bin/sh
number=$((${{1#ppp}} + 1))
/usr/sbin/ip -6 addr add 2001:db8:$number::1/64 dev $1
cat > /run/$1.radvd << RADVD
interface $1 {{
    AdvSendAdvert on;
    UnicastOnly on;
    MinRtrAdvInterval 3;
    MaxRtrAdvInterval 10;
    prefix 2001:db8:$number::/64 {{ AdvOnLink on; AdvAutonomous on; }};
}};
RADVD
exec radvd -C /run/$1.radvd -p /run/$1.radvd.pid -m stderr >> {LOG} 2>&1
END
cat > /etc/ppp/ipv6-down << 'END'
#!/bin/sh
kill $(cat /run/$1.radvd.pid)
END
chmod 755 /etc/ppp/ipv6-up /etc/ppp/ipv6-down
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip link add link eth0 name eth0.{VLAN} type vlan id {VLAN}
echo 1 > /proc/sys/net/ipv6/conf/eth0.{VLAN}/disable_ipv6
ip link set eth0.{VLAN} up
pppoe-server -I eth0.{VLAN} -C peer -L 10.67.0.1 -R 10.67.1.1 -N 32"
        ))?;
        Ok(PppoeServer(vm))
    }

    /// How often its log says this.
    pub fn said(&self, what: &str) -> Result<u64> {
        let count = self.0.must(&format!("grep -c '{what}' {LOG} || true"))?;
        count.trim().parse().with_context(|| count.clone())
    }

    /// Waits until no subscriber is there.
    pub fn wait_empty(&self) -> Result<()> {
        let start = Instant::now();
        while !self.0.must("pidof pppd || true")?.trim().is_empty() {
            ensure!(
                start.elapsed() < PATIENCE,
                "subscribers are still there:\n{}",
                self.0.must(&format!("tail -n 40 {LOG}"))?
            );
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Ends it, and leaves the machine as it was.
    pub fn stop(self) -> Result<()> {
        let rest = format!(
            "killall -q pppoe-server radvd pppd; ip link del eth0.{VLAN}
             rm -f /etc/ppp/ipv6-up /etc/ppp/ipv6-down /etc/ppp/chap-secrets
             echo 0 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv6/conf/all/forwarding"
        );
        self.0.must(&rest).map(drop)
    }
}
