//! System calls of a running daemon, as strace sees them.

use crate::guard::PATIENCE;
use anyhow::{Context, Result};
use lab::process::Process;
use lab::topology::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Calls by which something gets to the disk or to a peer.
const CALLS: &str = "trace=openat,mkdir,rename,renameat,renameat2,write,writev,pwrite64,ftruncate,fsync,fdatasync,\
                     sendto,sendmsg,sendmmsg";

/// A running strace.
pub struct Strace {
    process: Process,
    file: PathBuf,
}

/// What a daemon did, in order.
pub struct Trace {
    /// Its calls.
    pub calls: Vec<Call>,
    /// When each line of the trace was written, since 1970.
    times: Vec<Duration>,
}

/// A system call that succeeded.
#[derive(Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Where in the trace it begins and ends; whatever happens because of its end begins later.
    pub begins: usize,
    /// See `begins`.
    pub ends: usize,
    /// Where its arguments' first descriptor leads to, as far as that is a file or folder.
    pub file: Option<PathBuf>,
    /// Its arguments as they are printed, strings in hexadecimal.
    pub arguments: String,
}

impl Strace {
    /// Follows a daemon with all of its threads from now on.
    pub fn attach(lab: &Lab, daemon: &Process) -> Result<Self> {
        let name = format!("strace-{}", daemon.name());
        let file = lab.dir().join(format!("{name}.calls"));
        let mut command = Command::new("strace");
        // Strings in hexadecimal and whole, descriptors with what they lead to.
        command.args(["-f", "-ttt", "-y", "-xx", "-v", "-s", "1000000"]);
        command.args(["-p", &daemon.id().to_string(), "-e", CALLS, "-o"]);
        command.arg(&file);
        let mut process = Process::spawn(lab.dir(), &name, command)?;
        let log = process.log().to_owned();
        process.wait_until("its daemon", PATIENCE, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains(" attached"))
        })?;
        Ok(Strace { process, file })
    }

    /// What it did so far.
    pub fn so_far(&self) -> Result<Trace> {
        let text = std::fs::read_to_string(&self.file)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        read(&text[..whole]).context("no trace of strace")
    }

    /// Ends it; the daemon goes on. What it did.
    pub fn end(mut self) -> Result<Trace> {
        self.process.stop()?;
        self.so_far()
    }
}

/// Reads a trace: each line has a thread, a time, and a call or one half of it.
fn read(text: &str) -> Option<Trace> {
    let (mut calls, mut times, mut begun) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (n, line) in text.lines().enumerate() {
        let (thread, line) = line.split_once(' ')?;
        let (time, line) = line.trim_start().split_once(' ')?;
        times.push(Duration::try_from_secs_f64(time.parse().ok()?).ok()?);
        if let Some(line) = line.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (n, line));
        } else if let Some((_, end)) = line.strip_prefix("<... ").and_then(|l| l.split_once('>')) {
            if let Some((begins, begin)) = begun.remove(thread) {
                calls.extend(call(&format!("{begin}{end}"), begins, n));
            }
        } else {
            calls.extend(call(line, n, n));
        }
    }
    Some(Trace { calls, times })
}

/// A whole call, if it succeeded: `NAME(ARGUMENTS) = RESULT`.
fn call(text: &str, begins: usize, ends: usize) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    if result.trim().starts_with(['-', '?']) {
        return None;
    }
    let file = arguments
        .split_once('<')
        .filter(|(fd, _)| fd.bytes().all(|octet| octet.is_ascii_digit()))
        .and_then(|(_, path)| path.split_once('>'))
        .map(|(path, _)| PathBuf::from(text_of(&octets(path))));
    Some(Call {
        name: name.into(),
        begins,
        ends,
        file,
        arguments: arguments.into(),
    })
}

impl Call {
    /// The strings among its arguments, one behind the other.
    pub fn octets(&self) -> Vec<u8> {
        let strings = self.arguments.split('"').skip(1).step_by(2);
        strings.flat_map(octets).collect()
    }

    /// The paths among its arguments.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let strings = self.arguments.split('"').skip(1).step_by(2);
        strings.map(|string| text_of(&octets(string)).into())
    }

    /// The file whose content it changes.
    pub fn changes(&self) -> Option<&Path> {
        let changes = matches!(&*self.name, "write" | "writev" | "pwrite64" | "ftruncate");
        self.file.as_deref().filter(|_| changes)
    }

    /// The paths that it gives something to.
    pub fn names(&self) -> Vec<PathBuf> {
        match &*self.name {
            "openat" if self.arguments.contains("O_CREAT") => self.paths().collect(),
            "mkdir" => self.paths().collect(),
            "rename" | "renameat" | "renameat2" => self.paths().skip(1).collect(),
            _ => Vec::new(),
        }
    }

    /// What it makes certain.
    fn syncs(&self) -> Option<&Path> {
        let syncs = matches!(&*self.name, "fsync" | "fdatasync");
        self.file.as_deref().filter(|_| syncs)
    }
}

impl Trace {
    /// Where in the trace this moment is.
    pub fn at(&self, moment: SystemTime) -> usize {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.times.partition_point(|time| *time <= since)
    }

    /// Where it ends.
    pub fn end(&self) -> usize {
        self.times.len()
    }

    /// Files and folders below this one that were changed before `at` and not synced since, by then.
    pub fn not_synced(&self, below: &Path, at: usize) -> BTreeSet<PathBuf> {
        let mut open = BTreeSet::new();
        for call in self.calls.iter().filter(|call| call.ends < at) {
            // SQLite says O_CREAT of files that are there.
            let is_new = |path: &&PathBuf| {
                let mut before = self.calls.iter().take_while(|c| c.ends < call.begins);
                !before.any(|c| c.file.as_deref() == Some(path))
            };
            let named = call.names();
            let folders = named.iter().filter(is_new).filter_map(|path| path.parent());
            let changed = call.changes().into_iter().chain(folders);
            let below = changed.filter(|path| path.starts_with(below));
            open.extend(
                below
                    .filter(|path| !self.is_synced(path, call.ends, at))
                    .map(Path::to_owned),
            );
        }
        open
    }

    /// Whether a file or folder is synced after one place in the trace and before another one.
    pub fn is_synced(&self, path: &Path, after: usize, before: usize) -> bool {
        let mut syncs = self.calls.iter().filter(|call| call.syncs() == Some(path));
        syncs.any(|sync| sync.begins > after && sync.ends < before)
    }
}

/// The octets of a string that is printed as `\x00\x01`.
fn octets(printed: &str) -> Vec<u8> {
    let pairs = printed.split("\\x").skip(1);
    pairs
        .filter_map(|pair| u8::from_str_radix(pair.get(..2)?, 16).ok())
        .collect()
}

fn text_of(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes()
            .map(|octet| format!("\\x{octet:02x}"))
            .collect()
    }

    #[test]
    fn calls_are_put_together_and_judged_by_their_order() {
        let (file, new, folder) = (hex("/s/a"), hex("/s/a.new"), hex("/s"));
        let lines = [
            format!("openat(AT_FDCWD<{folder}>, \"{new}\", O_WRONLY|O_CREAT, 0600) = 3<{new}>"),
            format!("write(3<{new}>, \"{}\", 5) = 5", hex("\"5 (=")),
            format!("fdatasync(3<{new}> <unfinished ...>"),
            format!("write(9<{file}>, \"\", 0) = -1 EBADF (Bad file descriptor)"),
            "<... fdatasync resumed>) = 0".into(),
            format!("rename(\"{new}\", \"{file}\") = 0"),
            format!("fsync(4<{folder}>) = 0"),
        ];
        let thread = |n: usize| if n == 3 { 8 } else { 7 };
        let lines = lines.iter().enumerate();
        let text: String = lines
            .map(|(n, line)| format!("{}  {n}.5 {line}\n", thread(n)))
            .collect();
        let trace = read(&text).unwrap();
        let names: Vec<&str> = trace.calls.iter().map(|call| &*call.name).collect();
        assert_eq!(names, ["openat", "write", "fdatasync", "rename", "fsync"]);
        assert_eq!(trace.calls[1].octets(), b"\"5 (=");
        assert_eq!((trace.calls[2].begins, trace.calls[2].ends), (2, 4));
        assert_eq!(trace.calls[3].names(), [PathBuf::from("/s/a")]);
        assert_eq!(trace.at(UNIX_EPOCH + Duration::from_secs(4)), 4);
        let not_synced = |at| trace.not_synced(Path::new("/s"), at);
        let (new, folder) = (PathBuf::from("/s/a.new"), PathBuf::from("/s"));
        assert_eq!(not_synced(4), [folder.clone(), new].into());
        assert_eq!(not_synced(6), [folder].into());
        assert!(not_synced(trace.end()).is_empty());
    }
}
