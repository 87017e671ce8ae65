//! What systemd does for a daemon's descriptors: it keeps those that it is sent (sd_notify(3), FDSTORE) and passes them
//! on at the daemon's next start (sd_listen_fds(3)), so that a TAP keeps its carrier while nobody reads it.

use anyhow::{Context, Result};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is kept has numbers from here on, beyond those that are passed on, which begin at 3.
const FIRST_KEPT: RawFd = 64;
/// Descriptors that are kept at most.
const MOST: usize = 32;
/// Gives the descriptors that are named in `KEPT` the numbers that the daemon expects, and becomes the daemon.
const BECOME: &str = "number=3
for kept in $KEPT; do eval \"exec $number<&$kept $kept<&-\"; number=$((number + 1)); done
unset KEPT
LISTEN_PID=$$ exec \"$0\" \"$@\"";

/// The descriptors of one daemon.
#[derive(Debug)]
pub struct Keep {
    socket: UnixDatagram,
    path: PathBuf,
    kept: BTreeMap<String, OwnedFd>,
}

impl Keep {
    /// Listens at `path` for what the daemon says.
    pub fn open(path: &Path) -> Result<Self> {
        let socket = UnixDatagram::bind(path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        socket.set_nonblocking(true)?;
        Ok(Keep {
            socket,
            path: path.to_owned(),
            kept: BTreeMap::new(),
        })
    }

    /// Makes `bash` become a daemon, which says at its socket what is to be kept.
    pub fn become_daemon(&self, bash: &mut Command, program: &Path, argument: &Path) {
        bash.arg("-c").arg(BECOME).arg(program).arg(argument);
        bash.env("NOTIFY_SOCKET", &self.path);
    }

    /// Takes in what the daemon has said.
    pub fn listen(&mut self) {
        let mut text = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        loop {
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut text)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let Ok(received) = recvmsg(&self.socket, &mut parts, &mut rights, flags) else {
                return;
            };
            let said = String::from_utf8_lossy(&text[..received.bytes]).into_owned();
            let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
            let name = value("FDNAME=").unwrap_or_default();
            if value("FDSTOREREMOVE=") == Some("1") {
                self.kept.remove(name);
            }
            for message in rights.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    descriptors.for_each(|descriptor| self.keep(name, &descriptor));
                }
            }
        }
    }

    fn keep(&mut self, name: &str, descriptor: &OwnedFd) {
        if self.kept.len() >= MOST && !self.kept.contains_key(name) {
            return; // as systemd does beyond FileDescriptorStoreMax
        }
        if let Ok(kept) = fcntl_dupfd_cloexec(descriptor, FIRST_KEPT) {
            self.kept.insert(name.to_owned(), kept);
        }
    }

    /// Runs `start`, which starts the daemon from this command, with everything that is kept passed on.
    pub fn passing_on<T>(
        &self,
        command: &mut Command,
        start: impl FnOnce(&mut Command) -> Result<T>,
    ) -> Result<T> {
        let numbers = self.kept.values().map(|kept| kept.as_raw_fd().to_string());
        let names: Vec<&str> = self.kept.keys().map(String::as_str).collect();
        command
            .env("KEPT", numbers.collect::<Vec<_>>().join(" "))
            .env("LISTEN_FDS", names.len().to_string())
            .env("LISTEN_FDNAMES", names.join(":"));
        self.inheritable(FdFlags::empty())?;
        let started = start(command);
        self.inheritable(FdFlags::CLOEXEC)?;
        started
    }

    fn inheritable(&self, flags: FdFlags) -> Result<()> {
        let mut kept = self.kept.values();
        kept.try_for_each(|kept| fcntl_setfd(kept, flags))
            .context("cannot pass on what is kept")
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        // The next gateway of the same lab listens there.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::fs::File;
    use std::io::{IoSlice, Read, Seek};
    use std::os::fd::AsFd;

    fn say(to: &UnixDatagram, text: &str, descriptor: Option<&File>) {
        let descriptors: Vec<_> = descriptor.iter().map(|file| file.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(rights.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let text = [IoSlice::new(text.as_bytes())];
        sendmsg(to, &text, &mut rights, SendFlags::empty()).unwrap();
    }

    #[test]
    fn what_a_daemon_sends_is_there_at_its_next_start_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut keep = Keep::open(&dir.path().join("notify")).unwrap();
        let daemon = UnixDatagram::unbound().unwrap();
        daemon.connect(dir.path().join("notify")).unwrap();
        for (name, content) in [("b", "second"), ("a", "first"), ("c", "gone")] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            let mut file = File::open(path).unwrap();
            file.rewind().unwrap();
            say(&daemon, &format!("FDSTORE=1\nFDNAME={name}"), Some(&file));
        }
        say(&daemon, "READY=1", None);
        say(&daemon, "FDSTOREREMOVE=1\nFDNAME=c", None);
        keep.listen();

        let out = dir.path().join("out");
        let mut bash = Command::new("bash");
        let script = dir.path().join("script");
        let told = "echo $LISTEN_FDS $LISTEN_FDNAMES $((LISTEN_PID == $$)) $(cat <&3) $(cat <&4) ${KEPT:-none}
            ls /proc/$$/fd | sort -n | tail -1";
        std::fs::write(&script, told).unwrap();
        keep.become_daemon(&mut bash, Path::new("/bin/bash"), &script);
        bash.stdout(File::create(&out).unwrap());
        let start = |command: &mut Command| Ok(command.spawn()?);
        let mut child = keep.passing_on(&mut bash, start).unwrap();
        assert!(child.wait().unwrap().success());
        let mut said = String::new();
        File::open(&out).unwrap().read_to_string(&mut said).unwrap();
        let (first, last) = said.trim().split_once('\n').unwrap();
        assert_eq!(first, "2 a:b 1 first second none");
        // Bash has its script open at 255; what was kept is at its own number alone.
        assert!(last.trim() == "255" || last.trim() == "4", "{said}");
    }
}
