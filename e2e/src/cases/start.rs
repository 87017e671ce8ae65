use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::program;
use anyhow::{Context, Result, ensure};
use lab::netns::Netns;
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Somebody behind the second neighbour.
const ANYBODY: &str = "198.51.100.1:9";
/// That neighbour's MAC address.
const RECEIVER: &str = "02:00:00:00:01:01";

/// Starts that are measured.
const STARTS: usize = 7;

/// What an operator is to expect of a start on a machine that has nothing else to do, in milliseconds.
const WANTED: f64 = 100.0;
/// What is too much on any machine: so much of what DPDK's own testpmd takes from its start to the first packet.
const MOST_PART: f64 = 0.3;
/// MiB of memory of either program, and packet buffers: about as many as ours makes of that.
const MEMORY: &str = "128";
const BUFFERS: &str = "27000";

/// From the start of the program to the first packet from core port to core port, the kernel's interfaces and routes
/// being there from before: how long a gateway is away whose user plane is started anew. What the kernel was told for good about
/// neighbours outlives that, and a user plane that is killed takes its program off the interfaces.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let world = World::make(lab)?;
    // The first start makes the TAPs, which stay.
    world.start()?.leave()?;
    world.routes()?;
    let (mut times, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        times.push(world.measure_anew(World::spawn, Program::leave)?);
        theirs.push(world.measure_anew(World::spawn_testpmd, Program::end_input)?);
    }
    let each: Vec<String> = times.iter().map(|time| format!("{time:.0}")).collect();
    times.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let theirs = theirs[STARTS / 2];
    let (least, median, most) = (times[0], times[STARTS / 2], times[STARTS - 1]);
    println!(
        "        {least:.0} ms at least, {median:.0} in the median, {most:.0} at most; {WANTED} are wanted; testpmd takes {theirs:.0}"
    );
    ensure!(
        median <= MOST_PART * theirs,
        "the first packet comes {median:.0} ms after the start, testpmd's {theirs:.0} ms: {}",
        each.join(", ")
    );
    world.check_neighbour()?;
    world.check_killed()
}

/// Two neighbours and the gateway between them.
struct World {
    gateway: Netns,
    sender: Netns,
    receiver: Netns,
    start: std::path::PathBuf,
}

impl World {
    fn make(lab: &Lab) -> Result<Self> {
        let place = |word: &str| Netns::named(format!("sluice-{word}-{}", lab.name()));
        let dir = lab.dir();
        let start = dir.join("start.yaml");
        let world = World {
            gateway: place("gateway"),
            sender: place("sender"),
            receiver: place("receiver"),
            start,
        };
        world.delete();
        world.write_files(dir)?;
        let World {
            gateway,
            sender,
            receiver,
            ..
        } = &world;
        for place in [gateway, sender, receiver] {
            place.create()?;
        }
        for (n, place) in [sender, receiver].into_iter().enumerate() {
            let near = format!("core{n}");
            gateway.ip(&format!(
                "link add {near} address 02:00:00:00:00:0{n} type veth peer name uplink address 02:00:00:00:01:0{n} netns {}",
                place.name()
            ))?;
            gateway.offloads_off(&near)?;
            place.offloads_off("uplink")?;
            gateway.ip(&format!("link set {near} up"))?;
            place.ip(&format!(
                "link set uplink up\naddress add 10.0.{n}.2/24 dev uplink"
            ))?;
            gateway.silence(&[&near])?;
        }
        let neighbour = "neighbour add 10.0.0.1 lladdr 02:00:00:00:00:00 dev uplink nud permanent";
        sender.ip(&format!("{neighbour}\nroute add default via 10.0.0.1"))?;
        receiver.ip("address add 198.51.100.1/32 dev lo")?;
        Ok(world)
    }

    fn write_files(&self, dir: &Path) -> Result<()> {
        let state = dir.join("start-state");
        let _ = fs::remove_dir_all(&state);
        let start = format!(
            "node-id: up-start\naddress: 127.0.0.1\ncontrol-planes: [127.0.0.2]\napi-socket: {0}/start.sock\nstate: {1}\nmemory: {MEMORY}\n\
             max-sessions: 1024\nhuge-pages: false\nworker-cores: none\n\
             initial-configuration: start-document.yaml\n",
            dir.display(),
            state.display(),
        );
        fs::write(&self.start, start)?;
        let port = |n: usize| {
            format!(
                "  core{n}: {{role: core, device: 'net_af_xdp{n},iface=core{n}', addresses: [10.0.{n}.1/24]}}\n"
            )
        };
        let instance =
            "network-instances:\n  default: {interface: sl-default, gateway: [100.64.0.1]}\n";
        let document = format!("{instance}ports:\n{}{}", port(0), port(1));
        Ok(fs::write(dir.join("start-document.yaml"), document)?)
    }

    /// The gateway's way to anybody, and the neighbour on it, as they are when only the user plane was away.
    fn routes(&self) -> Result<()> {
        let dev = self
            .gateway
            .run(&["ip", "-o", "route", "get", "10.0.1.2"])?;
        let (_, dev) = dev.split_once("dev ").context("no way to the neighbour")?;
        let dev = dev.split(' ').next().context("no interface")?;
        self.gateway.ip(&format!(
            "neighbour replace 10.0.1.2 lladdr {RECEIVER} dev {dev} nud permanent\nroute replace 198.51.100.0/24 via 10.0.1.2"
        ))
    }

    /// Starts the user plane and waits until it is ready.
    fn start(&self) -> Result<Program> {
        let user_plane = self.spawn()?;
        let taps = || {
            self.gateway
                .run(&["ip", "-o", "route", "show", "10.0.1.0/24"])
        };
        let begin = Instant::now();
        while taps()?.is_empty() {
            ensure!(begin.elapsed() < PATIENCE, "the user plane does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(user_plane)
    }

    fn spawn(&self) -> Result<Program> {
        let mut command = Command::new(program("sluice-up")?);
        command
            .arg(&self.start)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = self.gateway.within(|| command.spawn())??;
        Ok(Program(child))
    }

    /// DPDK's own program, which forwards from port to port and does nothing else. It ends with its standard input.
    fn spawn_testpmd(&self) -> Result<Program> {
        let mut command = Command::new("dpdk-testpmd");
        command
            .args(["-l", "0,1", "--no-huge", "-m", MEMORY])
            .args(["--no-pci", "--no-shconf", "--no-telemetry"])
            .args(["--vdev", "net_af_xdp0,iface=core0"])
            .args(["--vdev", "net_af_xdp1,iface=core1"])
            .args(["--", "--auto-start", "--forward-mode=mac"])
            .arg(format!("--total-num-mbufs={BUFFERS}"))
            .arg(format!("--eth-peer=1,{RECEIVER}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = self.gateway.within(|| command.spawn())?;
        let child = child.context("cannot start dpdk-testpmd (Debian's package dpdk-dev)")?;
        Ok(Program(child))
    }

    /// [`World::measure`] of a program that has just ended: it has the memory that the one before had. Memory that nobody had for a while
    /// may have gone back to the host of a virtual machine, and the first touch of it then takes longer than all of a start.
    fn measure_anew(
        &self,
        spawn: fn(&Self) -> Result<Program>,
        end: fn(Program) -> Result<()>,
    ) -> Result<f64> {
        self.measure(spawn, end)?;
        self.measure(spawn, end)
    }

    /// Milliseconds from the start of a program to the first packet at the receiver, while one is sent every
    /// millisecond.
    fn measure(
        &self,
        spawn: fn(&Self) -> Result<Program>,
        end: fn(Program) -> Result<()>,
    ) -> Result<f64> {
        let stop = AtomicBool::new(false);
        let receiver = self.receiver.within(|| UdpSocket::bind(ANYBODY))??;
        receiver.set_read_timeout(Some(PATIENCE))?;
        let sender = self.sender.within(|| UdpSocket::bind("0.0.0.0:0"))??;
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Relaxed) {
                    let _ = sender.send_to(&[0; 64], ANYBODY);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let begin = Instant::now();
            let measured = spawn(self).and_then(|program| {
                let arrived = receiver.recv(&mut [0; 64]);
                let took = begin.elapsed();
                arrived.context("no packet was forwarded")?;
                end(program)?;
                Ok(took.as_secs_f64() * 1000.0)
            });
            stop.store(true, Relaxed);
            measured
        })
    }

    /// The neighbour that the kernel was told for good is there after so many starts.
    fn check_neighbour(&self) -> Result<()> {
        let known = self.gateway.run(&["ip", "neighbour", "show", "10.0.1.2"])?;
        ensure!(known.contains("PERMANENT"), "the neighbour: {known:?}");
        Ok(())
    }

    /// Nothing takes the frames of an interface whose user plane was killed.
    fn check_killed(&self) -> Result<()> {
        let programs = || {
            let link = ["ip", "-o", "link", "show", "core0"];
            let link = self.gateway.run(&link);
            link.map(|link| link.contains("prog/xdp"))
        };
        let begin = Instant::now();
        let user_plane = self.spawn()?;
        while !programs()? {
            ensure!(
                begin.elapsed() < PATIENCE,
                "the user plane does not open its port"
            );
        }
        drop(user_plane);
        ensure!(!programs()?, "a program stayed on the port's interface");
        Ok(())
    }

    fn delete(&self) {
        for place in [&self.gateway, &self.sender, &self.receiver] {
            let _ = place.delete();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.delete();
    }
}

/// A user plane or testpmd; killed when dropped.
struct Program(Child);

impl Program {
    /// Ends it as an operator would.
    fn leave(self) -> Result<()> {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM)?;
        self.end_input()
    }

    /// Closes its standard input, and waits until it has ended.
    fn end_input(mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
