//! The cases, each in a file of its own, in the order in which they run.

mod accounting_on;
mod bad_config;
pub mod changes_beside_setups;
mod clear_session;
mod coa;
pub mod come_and_go;
mod commits;
mod core_sources;
mod drain;
mod echo_replies;
mod events_out;
pub mod flood;
mod framed_routes;
mod frr;
pub mod frr_full;
mod full_disk;
mod gateway_ping;
mod gnmi;
mod grpc_peer;
mod history;
mod how_to;
mod how_to_load;
mod how_to_policies;
mod how_to_radius;
mod how_to_secure;
mod idle_cpu;
mod kill_commits;
mod kills;
mod lab;
mod lag;
mod ledger;
pub mod load;
mod load_pppoe_server;
mod missing_port;
mod path_mtu;
mod pfcp_peer;
mod pfcp_version;
mod policies;
mod pool_full;
mod power_loss;
mod pppd_accounting;
mod pppd_chap;
mod pppd_dhcpv6;
mod pppd_discovery;
mod pppd_iperf3;
mod pppd_ipv6;
mod pppd_mschapv2;
mod pppd_pap;
mod pppd_vlans;
mod pppd_wrong_password;
mod previous;
mod radius_bad_authenticator;
mod radius_servers;
mod radius_streams;
mod rates;
mod redirect;
mod refused_commits;
pub mod resume;
mod session_table_full;
mod shared_rate;
mod shell;
mod spoofing;
mod start;
mod subscriber_to_subscriber;
mod synced;
pub mod takeovers;
mod top;
mod trace;
mod tshark_wire;
mod two_sessions;
mod unconfirmed;
mod upgrade;
mod wall_clock;
pub mod web;
pub mod web_manager;
mod workers;

use crate::fixture::Fixture;
use anyhow::Result;

/// A case: it fails if the feature that it names is taken away.
pub struct Case {
    /// What `make e2e CASE=` takes.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The case itself.
    pub run: fn(&mut Fixture) -> Result<()>,
    /// What it needs.
    pub needs: Needs,
}

/// What a case needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// A lab; others may run beside it.
    Lab,
    /// A lab with the virtual machine; others may run beside it.
    Machine,
    /// The whole computer: it loads it, or measures.
    Alone,
}

/// A case that others may run beside.
const fn case(
    name: &'static str,
    about: &'static str,
    run: fn(&mut Fixture) -> Result<()>,
) -> Case {
    Case {
        name,
        about,
        run,
        needs: Needs::Lab,
    }
}

impl Case {
    /// It takes homes in the virtual machine.
    const fn with_machine(mut self) -> Self {
        self.needs = Needs::Machine;
        self
    }

    /// No other case may run beside it.
    const fn alone(mut self) -> Self {
        self.needs = Needs::Alone;
        self
    }
}

/// All cases. Those that are alike stand together, so that a lane goes on with the daemons that it has; the longest comes first, so that no
/// other lane waits for it at the end.
pub const CASES: &[Case] = &[
    case(
        "policies",
        "what ACLs deny is lost and nothing else is, while configuration and RADIUS change them and daemons die",
        policies::run,
    ),
    case(
        "bad-config",
        "a wrong file is refused by file, line and expectation, and nothing is half started",
        bad_config::run,
    ),
    case(
        "missing-port",
        "a port that does not exist is named, and nothing is half started",
        missing_port::run,
    ),
    case(
        "start",
        "how long it takes from a user plane's start to the first packet that it forwards",
        start::run,
    ).alone(),
    case(
        "pfcp-peer",
        "an independent PFCP peer in Go works with either plane",
        pfcp_peer::run,
    ),
    case(
        "grpc-peer",
        "Google's gRPC for Python reads from the .proto files what the command shows",
        grpc_peer::run,
    ),
    case(
        "radius-servers",
        "the second server answers while the first is dead, lossy or wrong, and each session has one Start and one Stop",
        radius_servers::run,
    ),
    case(
        "radius-streams",
        "a server over TCP, and one over TLS that is killed and has a wrong authority, and each session has one Start and one Stop",
        radius_streams::run,
    ),
    case(
        "ledger",
        "everything that is held has its owner; what has none is found, repaired, and nothing is left at the end",
        ledger::run,
    ),
    case(
        "resume-2000",
        "a restarted user plane has all of 2,000 sessions again",
        resume::few,
    ).alone(),
    case(
        "resume-131072",
        "131,072 sessions are resumed by a restarted control plane, and told again to a user plane",
        resume::all,
    ).alone(),
    case(
        "fixed-20000",
        "20,000 sessions with addresses and prefixes outside of all pools are announced, resumed, and told again",
        resume::fixed,
    ).alone(),
    case(
        "power-loss",
        "whenever the power is lost, what was acknowledged until then is on the disk, names of files included, and opens",
        power_loss::run,
    ),
    case(
        "full-disk",
        "while the disk is full nobody gets in, nobody is lost, and what ends is written down when there is room",
        full_disk::run,
    ),
    case(
        "synced",
        "as strace sees it, nothing is acknowledged before the files and their names are on the disk",
        synced::run,
    ),
    case(
        "commit-unconfirmed",
        "a version that nobody confirms goes again on both planes, also when the control plane is killed meanwhile; a confirmed one stays",
        unconfirmed::run,
    ),
    case(
        "commit-refused",
        "what a user plane cannot do is refused with its reason, and nothing changes anywhere",
        refused_commits::refused,
    ),
    case(
        "commit-offered-again",
        "a user plane that refused a document, was away or died before it answered has it in the end",
        refused_commits::offered_again,
    ),
    case(
        "frr-bgp",
        "FRR learns the subscribers' nets by BGP and gives routes, ECMP and BFD; what is used is what it says, also while it flaps",
        frr::bgp,
    ),
    case(
        "frr-ospf",
        "FRR learns the subscribers' nets by OSPF and gives routes of both families",
        frr::ospf,
    ),
    case(
        "frr-full",
        "a part of a real full table by FRR: how fast, that the gateway has what the kernel has, and that all of it goes again",
        frr_full::some,
    ).alone(),
    case(
        "lab-100",
        "the lab's 100 homes get online, nothing is wrong, and nothing is left",
        lab::hundred,
    ),
    case(
        "how-to",
        "every command of the how-to does what it says in a running lab",
        how_to::run,
    ),
    case(
        "how-to-secure",
        "PFCP and GTP-U in WireGuard as the how-to says: nothing in clear, no stranger gets in, and a killed tunnel costs nobody",
        how_to_secure::run,
    ),
    case(
        "commits",
        "100 changes a second that concern nobody, and 100 readers, touch none of 1,000 homes and lose no packet",
        commits::run,
    ).alone(),
    case(
        "kill-commits",
        "kill -9 of any daemon in the middle of commits: the version before or the new one, on all planes; acknowledged ones stay",
        kill_commits::run,
    ).alone(),
    case(
        "shell",
        "the interactive command line as a person meets it: completion, help, pages, Ctrl-C, a narrow terminal, none",
        shell::run,
    ),
    case(
        "drain",
        "a user plane takes no new sessions and ends the 500 that it has at the wanted rate; the other one does not notice",
        drain::run,
    ).alone(),
    case(
        "upgrade",
        "new programs under running sessions as the how-to says: only what a restarted user plane was sent is lost",
        upgrade::run,
    ),
    case(
        "previous",
        "sessions of the version before go on under this one, either plane first, and both versions work together",
        previous::managed::run,
    ),
    case(
        "previous-unmanaged",
        "the same of a version whose user plane had its own configuration; what cannot be is refused, unharmed",
        previous::unmanaged::run,
    ),
    case(
        "top",
        "the live view of a lab: everything is on it, keys work, the terminal is left whole; once and in JSON for scripts",
        top::run,
    ),
    case(
        "lab-restart",
        "a lab runs beside the leftovers of one that was killed with -9",
        lab::restart,
    ),
    case(
        "lab-supervision",
        "the lab starts each daemon again that is killed, and only what a dead user plane was sent is lost",
        lab::supervision,
    ),
    case(
        "pppd-discovery",
        "pppd gets PADO and PADS through both planes",
        pppd_discovery::run,
    ).with_machine(),
    case(
        "pppd-chap",
        "pppd authenticates by CHAP against FreeRADIUS and pings over IPv4",
        pppd_chap::run,
    ).with_machine(),
    case(
        "pppd-vlans",
        "pppd on Linux's VLAN devices: priority-tagged, one tag and two, of both kinds",
        pppd_vlans::run,
    ).with_machine(),
    case(
        "pppd-mschapv2",
        "pppd authenticates by MS-CHAPv2 against FreeRADIUS and local users, verifies the gateway, and pings; a wrong password fails",
        pppd_mschapv2::run,
    ).with_machine(),
    case(
        "pppd-ipv6",
        "pppd's home gets a /64 by Router Advertisement and pings over IPv6",
        pppd_ipv6::run,
    ).with_machine(),
    case(
        "pppd-dhcp6c",
        "a host behind pppd reaches the internet by the prefix that WIDE's dhcp6c asks for",
        pppd_dhcpv6::wide,
    ).with_machine(),
    case(
        "pppd-dhcpcd",
        "a host behind pppd reaches the internet by the prefix that dhcpcd asks for",
        pppd_dhcpv6::dhcpcd,
    ).with_machine(),
    case(
        "pppd-iperf3",
        "TCP flows both ways in both families",
        pppd_iperf3::run,
    ).with_machine(),
    case(
        "pppd-accounting",
        "FreeRADIUS hears one Start and one Stop with the octets that pppd counted",
        pppd_accounting::run,
    ).with_machine(),
    case(
        "pppd-wrong-password",
        "a reject reaches pppd as an authentication failure and leaves nothing; who tries for ever is answered ever later",
        pppd_wrong_password::run,
    ).with_machine(),
    case(
        "clear-session",
        "an operator ends a session: pppd hears it, nothing is left, the record says who",
        clear_session::run,
    ).with_machine(),
    case(
        "history",
        "who had an address, why somebody is refused and what was wrong, and to whom that is known, is known after kill -9 of the control plane",
        history::run,
    ).with_machine(),
    case(
        "web",
        "by HTTPS, sessions are told as the command line tells them, a change is checked, committed, confirmed and taken back, and who did it is known, while a hundred read; Prometheus answers every query of the dashboards",
        web::run,
    ),
    case(
        "events-out",
        "rsyslog, a webhook and curl get every event of the history, although the webhook refuses them for a while and sluice-web is killed meanwhile",
        events_out::run,
    ),
    case(
        "gnmi",
        "by gNMI, Google's gRPC reads state and configuration, changes a pool, hears of it at once, and changes nothing by a wrong request",
        gnmi::run,
    ),
    case(
        "web-manager",
        "the link that the lab prints opens the web manager in Chromium: every page and action, by keys and on a narrow screen",
        web_manager::run,
    ),
    case(
        "gateway-ping",
        "the gateway's own addresses answer a subscriber's ping",
        gateway_ping::run,
    ).with_machine(),
    case(
        "spoofing",
        "forged addresses, MACs, session ids and tags are dropped and counted by name",
        spoofing::run,
    ).with_machine(),
    case(
        "how-to-radius",
        "every recipe for FreeRADIUS works as its page says",
        how_to_radius::run,
    ),
    case(
        "accounting-on",
        "FreeRADIUS hears of a start and a planned end only while no session lives on, and the rates of access lines",
        accounting_on::run,
    ),
    case(
        "coa",
        "radclient changes rates, MTU and time-outs of running sessions and ends one; what is rejected changes nothing",
        coa::run,
    ),
    case(
        "how-to-policies",
        "every recipe of the page about policies, with FreeRADIUS and radclient",
        how_to_policies::run,
    ),
    case(
        "redirect",
        "a home that has not paid is led to the portal by whatever server it asks, in both families; tshark finds no fault",
        redirect::run,
    ).with_machine(),
    case(
        "rates",
        "packets above the rate of a profile or a port are lost, and nothing else is",
        rates::run,
    ),
    case(
        "lag",
        "a port of two links and Linux's bonding agree by LACP; a home that uses a link that fails, or that leaves the bond, goes on by the other",
        lag::run,
    ).with_machine(),
    case(
        "shared-rate",
        "homes of two workers share the rate of their port by weight, and what those of one do not want, the others have; a segment that moves to one worker keeps its rate",
        shared_rate::run,
    ),
    case(
        "core-sources",
        "what comes from the core with a source that cannot be, or with a source route, is dropped and counted by name, and nothing else is",
        core_sources::run,
    ),
    case(
        "subscriber-to-subscriber",
        "two subscribers reach each other only through the gateway",
        subscriber_to_subscriber::run,
    ).with_machine(),
    case(
        "workers",
        "two workers share the sessions: each home reaches the internet and its neighbour, whoever has them",
        workers::run,
    ).with_machine(),
    case(
        "path-mtu",
        "what is too large for a session or a link is fragmented or reported, and TCP connections begin with what fits",
        path_mtu::run,
    ).with_machine(),
    case(
        "pfcp-version",
        "a PFCP peer of another version is told so and disturbs nobody",
        pfcp_version::run,
    ).with_machine(),
    case(
        "trace",
        "a dial-in is followed from its PADI on, without its password, and tshark reads the file; nothing is left of it after kill -9",
        trace::run,
    ).with_machine(),
    case(
        "tshark-wire",
        "tshark decodes the management link of a whole session without complaint",
        tshark_wire::run,
    ).with_machine(),
    case(
        "idle-cpu",
        "with sessions up and no traffic both daemons leave the machine idle",
        idle_cpu::run,
    ).alone(),
    case(
        "pppd-pap",
        "pppd authenticates by PAP against FreeRADIUS",
        pppd_pap::run,
    ).with_machine(),
    case(
        "framed-routes",
        "networks behind a subscriber's router, as RADIUS names them, are announced, reached, and gone with the session",
        framed_routes::run,
    ).with_machine(),
    case(
        "two-sessions",
        "two sessions of a user are one subscriber: one handle, one page, one limit",
        two_sessions::run,
    ).with_machine(),
    case(
        "echo-replies",
        "a home that expects an echo reply every second outlives ten seconds without the control plane",
        echo_replies::run,
    ).with_machine(),
    case(
        "pool-full",
        "a subscriber for whom no address is left is refused, the others stay",
        pool_full::run,
    ).with_machine(),
    case(
        "session-table-full",
        "a subscriber beyond the session limit gets no offer, the others stay",
        session_table_full::run,
    ).with_machine(),
    case(
        "radius-bad-authenticator",
        "replies that are signed wrongly are ignored and counted",
        radius_bad_authenticator::run,
    ).with_machine(),
    case(
        "wall-clock",
        "a step of the wall clock by an hour, either way, changes no timer of either daemon",
        wall_clock::run,
    ),
    case(
        "load",
        "sluice load: 500 homes that flap, and what its report says is what the gateway and FreeRADIUS say",
        load::run,
    ).alone(),
    case(
        "scale",
        "2,000 homes by RADIUS: traffic of each, a user plane's death, and nothing is left; what all of it costs",
        crate::scale::small,
    ).alone(),
    case(
        "flood",
        "while a line floods discovery, others connect as fast as without, and the line is shown, told by an alarm and held down",
        flood::run,
    ).alone(),
    case(
        "load-interrupted",
        "sluice load that is interrupted, or meets nobody, or wrong passwords: every session ends, and the report says why",
        load::interrupted,
    ),
    case(
        "how-to-load",
        "every command of the page about sluice load does what it says",
        how_to_load::run,
    ).alone(),
    case(
        "load-pppoe-server",
        "sluice load against Debian's pppoe-server with pppd: CHAP, both families, flapping, a wrong password",
        load_pppoe_server::run,
    ).with_machine(),
    case(
        "kill-control-plane",
        "kill -9 of sluice-cp under load: no packet is lost, every session stays, echoes and new homes go on",
        kills::control_plane,
    ).alone(),
    case(
        "kill-user-plane",
        "kill -9 of a sluice-up under load: its traffic comes back without its homes' doing, the other loses nothing",
        kills::user_plane,
    ).alone(),
    case(
        "kill-both",
        "kill -9 of sluice-cp and a sluice-up at once under load: every session is back",
        kills::both_planes,
    ).alone(),
    case(
        "stop-control-plane",
        "SIGSTOP of sluice-cp for five seconds under load costs no packet and no session",
        kills::stop_control_plane,
    ).alone(),
    case(
        "stop-user-plane",
        "SIGSTOP of a sluice-up for five seconds under load costs its own packets alone",
        kills::stop_user_plane,
    ).alone(),
    case(
        "partition",
        "planes that are cut apart for 3 s one way or both: traffic goes on, and afterwards both know who is there",
        kills::partition,
    ).alone(),
    case(
        "partition-long",
        "planes that are cut apart for 32 s: traffic goes on, nobody is given up, and afterwards both know who is there",
        kills::long_partition,
    ).alone(),
    case(
        "kill-accounting",
        "after all of it, and changes and ends by RADIUS, every session has one Start and one Stop with its octets; nothing is left",
        kills::accounting,
    ).alone(),
    case(
        "come-and-go",
        "1,000 homes dial in at once, pass traffic and leave, twice over; nothing is left",
        come_and_go::run,
    ).alone(),
];
