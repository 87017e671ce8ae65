//! A user plane in a network namespace of the test's own. The ports are TAPs whose other ends the test holds; the kernel that
//! answers behind them is the real one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use config::model::Level;
use config::{Fault, UserPlaneDocument};
use userplane::configure::Management;
use userplane::device::{Device, Kind};
use wire::eth;

/// Has `story` ask a running user plane, with the ends of `core0`, `acc0` and `acc1`. Needs root: `make unit`.
pub fn run(story: fn(&Asking, &[End; 3])) {
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
            .expect("a network namespace needs root: run `make unit`");
        // Addresses that the kernel makes up, and asks for duplicates of, come at times of their own.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        ip("link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(tell(story));
    });
    thread.join().unwrap();
}

async fn tell(story: fn(&Asking, &[End; 3])) {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "node-id: up1\naddress: 127.0.0.1\ncontrol-planes: [127.0.0.2]\nmemory: 64\nmax-sessions: 1000\nhuge-pages: false\nworker-cores: none\napi-socket: {directory}/up.sock\nstate: {directory}\n",
        directory = directory.path().display()
    );
    let start = config::parse(&text, "up.yaml").unwrap();
    let ends = ["core0", "acc0", "acc1"].map(End::open);
    let level = Arc::new(Mutex::new(Level::default()));
    let set_level = {
        let level = level.clone();
        Box::new(move |wanted| *level.lock().unwrap() = wanted)
    };
    let user_plane = userplane::start(&start, None, set_level);
    let user_plane = user_plane.await.unwrap();
    let management = user_plane.management();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = user_plane.run(async { drop(stopped.await) });
    // What the test does blocks: it has a thread of its own, in the same namespace.
    let story = async {
        let handle = tokio::runtime::Handle::current();
        let ask = Asking(management, handle, level);
        tokio::task::spawn_blocking(move || story(&ask, &ends))
            .await
            .unwrap();
        stop.send(()).unwrap();
    };
    let (ended, ()) = tokio::join!(running, story);
    ended.unwrap();
}

/// The way to the user plane.
pub struct Asking(
    pub Management,
    pub tokio::runtime::Handle,
    Arc<Mutex<Level>>,
);

impl Asking {
    /// How much its log says.
    pub fn level(&self) -> Level {
        *self.2.lock().unwrap()
    }

    /// Tells it what to be.
    pub fn reconfigure(&self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        self.1.block_on(self.0.reconfigure(document.clone()))
    }

    /// What its worker and its devices have.
    pub fn tables(&self) -> BTreeSet<String> {
        self.1.block_on(self.0.tables()).unwrap()
    }

    /// Waits until the worker has what a look at it is to show.
    pub fn eventually(&self, what: &str, holds: impl Fn(&BTreeSet<String>) -> bool) {
        let mut last = BTreeSet::new();
        for _ in 0..200 {
            last = self.tables();
            if holds(&last) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{what}: {last:#?}");
    }
}

/// The test's end of a port.
pub struct End(pub File);

impl End {
    /// Makes the interface.
    pub fn open(name: &str) -> Self {
        let device = Device::open(name, Kind::Tap).unwrap();
        ip(&format!("link set {name} up"));
        let file = device.as_fd().try_clone_to_owned().unwrap();
        // The interface lives for as long as the file.
        Self(file.into())
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        (&self.0).write_all(frame).unwrap();
    }

    /// Reads frames until one is wanted, for a while.
    pub fn receive<T>(&self, wanted: impl Fn(&eth::Frame<'_>) -> Option<T>) -> Option<T> {
        let mut buffer = [0; 4096];
        for _ in 0..200 {
            match (&self.0).read(&mut buffer) {
                Ok(length) => {
                    let frame = eth::Frame::parse(&buffer[..length]).ok();
                    if let Some(found) = frame.and_then(|frame| wanted(&frame)) {
                        return Some(found);
                    }
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        None
    }
}

/// Runs `ip`, and gives what it prints.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
