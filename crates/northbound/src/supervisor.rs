//! What a supervisor (systemd, the lab) is told, and what it keeps for a daemon's next start: sd_notify(3) and
//! sd_listen_fds(3). Without a supervisor nothing of this does anything.

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;

/// The first descriptor that a supervisor passes on (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// Says how the daemon is: `READY=1`, `STOPPING=1`, or another assignment of sd_notify(3).
///
/// # Errors
/// The supervisor named a socket that cannot be written to.
pub fn notify(state: &str) -> io::Result<()> {
    send(state, None)
}

/// Has a descriptor kept under a name, so that what it holds open outlives the daemon.
///
/// # Errors
/// The supervisor named a socket that cannot be written to.
pub fn keep(name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    send(&format!("FDSTORE=1\nFDNAME={name}"), Some(descriptor))
}

/// Has a descriptor kept no longer.
///
/// # Errors
/// The supervisor named a socket that cannot be written to.
pub fn forget(name: &str) -> io::Result<()> {
    send(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)
}

/// The descriptors that were kept, by their names.
///
/// They are duplicates: the numbers that were passed on stay open beside them until the daemon ends, since nothing tells
/// the language that they are ours to close.
///
/// # Errors
/// The system does not let a process take its own descriptors.
pub fn kept() -> io::Result<BTreeMap<String, OwnedFd>> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let own = getpid();
    if variable("LISTEN_PID") != own.as_raw_nonzero().to_string() {
        return Ok(BTreeMap::new()); // meant for somebody else, or for nobody
    }
    let count: usize = variable("LISTEN_FDS").parse().unwrap_or(0);
    let names = variable("LISTEN_FDNAMES");
    let this = pidfd_open(own, PidfdFlags::empty())?;
    let take = |(number, name): (RawFd, &str)| {
        let descriptor = pidfd_getfd(&this, number, PidfdGetfdFlags::empty())?;
        Ok((name.to_owned(), descriptor))
    };
    (FIRST..)
        .zip(names.split(':'))
        .take(count)
        .map(take)
        .collect()
}

fn send(state: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let to = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => UnixAddr::new_abstract(name)?,
        None => UnixAddr::new(path.as_os_str())?,
    };
    let socket = UnixDatagram::unbound()?;
    let descriptors: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if descriptors.is_empty() {
        &[][..]
    } else {
        &rights
    };
    let text = [IoSlice::new(state.as_bytes())];
    sendmsg(
        socket.as_raw_fd(),
        &text,
        rights,
        MsgFlags::MSG_NOSIGNAL,
        Some(&to),
    )?;
    Ok(())
}
