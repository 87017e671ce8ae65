//! A virtual machine with Debian's kernel: the one place where Linux's own PPPoE client can run beside us.
//!
//! The image is made by `vm/build`; its init takes commands on a virtio port (see `vm/init`).

use crate::guard::PATIENCE;
use crate::site::UP;
use anyhow::{Context, Result, bail};
use lab::process::Process;
use lab::topology::{Lab, Place};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The TAP on the access bridge that the machine's network card is.
pub const TAP: &str = "vm0";
/// The TAPs that its two other network cards are, `eth1` and `eth2`: on no bridge, for cases that give them to a user plane.
pub const LINKS: [&str; 2] = ["vm1", "vm2"];
/// Software emulation boots in about 4 s; a busy machine may take much longer.
const BOOT_LIMIT: Duration = Duration::from_secs(240);

/// Software emulation, a network card whose TAP has no vnet header (so that the guest computes every checksum itself,
/// as a home router would), and the port that commands come on. There is room for a second processor because
/// QEMU before 8.1 leaves out the guest's memory barriers if there is none ("tcg: Do not elide memory barriers for !CF_PARALLEL in system mode"),
/// though the network card runs in another thread: the likely reason why a guest now and then ran on and sent nothing any more.
const MACHINE: &str =
    "-accel tcg -cpu max -smp cpus=1,maxcpus=2 -m 256 -nodefaults -no-user-config -display none -no-reboot
    -device virtio-net-pci,netdev=net,romfile=
    -device virtio-serial-pci -device virtserialport,chardev=line,name=commands";

/// A running virtual machine; ended when dropped.
pub struct Vm {
    // Held so that the machine ends with this value.
    _process: Process,
    line: RefCell<Line>,
}

/// The port that carries commands and answers.
struct Line {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
    last: u64,
}

/// What a command came to.
#[derive(Debug)]
pub struct Done {
    /// Its exit status; 137 if it had to be killed.
    pub status: i32,
    /// Standard output and error together.
    pub output: String,
}

impl Vm {
    /// Boots it with its network card on the lab's access bridge.
    pub fn boot(lab: &Lab) -> Result<Self> {
        let image = image()?;
        let access = lab.netns(Place::Access(UP));
        if access.run(&["ip", "link", "show", TAP]).is_ok() {
            access.ip(&format!("link del {TAP}"))?; // of a machine that has ended
        }
        lab.persistent_tap(UP, TAP)?;
        for link in LINKS {
            // One of a machine that has ended may be anywhere.
            for place in [Place::Access(UP), Place::UserPlane(UP)] {
                let _ = lab.netns(place).ip(&format!("link del {link}"));
            }
            access.ip(&format!("tuntap add {link} mode tap"))?;
        }
        let socket = lab.dir().join("vm.sock");
        let mut qemu = access.command("qemu-system-x86_64");
        let console = lab.dir().join("vm-console.log");
        qemu.args(MACHINE.split_whitespace())
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .args([Path::new("-kernel"), &image.join("vmlinuz")])
            .args([Path::new("-initrd"), &image.join("initramfs")])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .arg("-chardev")
            .arg(format!(
                "socket,id=line,path={},server=on,wait=off",
                socket.display()
            ))
            .arg("-netdev")
            .arg(format!(
                "tap,id=net,ifname={TAP},script=no,downscript=no,vnet_hdr=off"
            ));
        for link in LINKS {
            // Links whose speed is not known are not aggregated.
            qemu.arg("-device").arg(format!(
                "virtio-net-pci,netdev={link},romfile=,speed=1000,duplex=full"
            ));
            qemu.arg("-netdev").arg(format!(
                "tap,id={link},ifname={link},script=no,downscript=no,vnet_hdr=off"
            ));
        }
        let mut process = Process::spawn(lab.dir(), "vm", qemu)?;
        process.wait_until("its command port", PATIENCE, || {
            UnixStream::connect(&socket).is_ok()
        })?;
        let writer = UnixStream::connect(&socket)?;
        let mut line = Line {
            reader: BufReader::new(writer.try_clone()?),
            writer,
            last: 0,
        };
        match line.read(BOOT_LIMIT) {
            Ok(word) if word == "ready" => Ok(Vm {
                _process: process,
                line: RefCell::new(line),
            }),
            Ok(word) => bail!("the virtual machine began with {word:?}"),
            Err(error) => Err(error.context(format!(
                "the virtual machine did not boot\n{}",
                process.tail()
            ))),
        }
    }

    /// Runs a shell command to its end, killed after `limit`.
    pub fn run(&self, command: &str, limit: Duration) -> Result<Done> {
        let answer = self.line.borrow_mut().ask(command, limit);
        answer.with_context(|| format!("in the virtual machine: {command}"))
    }

    /// Runs a short command that must succeed; what it printed.
    pub fn must(&self, command: &str) -> Result<String> {
        let done = self.run(command, PATIENCE)?;
        if done.status != 0 {
            bail!(
                "in the virtual machine: `{command}` ended with {}: {}",
                done.status,
                done.output.trim()
            );
        }
        Ok(done.output)
    }
}

impl Line {
    fn ask(&mut self, command: &str, limit: Duration) -> Result<Done> {
        self.last += 1;
        let (id, seconds) = (self.last.to_string(), limit.as_secs().max(1));
        writeln!(self.writer, "{id} {seconds} {}", hex(command.as_bytes()))?;
        let answer = self.read(limit + Duration::from_secs(15))?;
        let mut words = answer.split(' ');
        if words.next() != Some(&id) {
            bail!("expected an answer to command {id}, got {answer:?}");
        }
        let status = words
            .next()
            .and_then(|word| word.parse().ok())
            .context("an answer without a status")?;
        let output =
            unhex(words.next().unwrap_or("")).context("an answer that is not hexadecimal")?;
        Ok(Done {
            status,
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }

    fn read(&mut self, limit: Duration) -> Result<String> {
        self.reader.get_ref().set_read_timeout(Some(limit))?;
        let mut text = String::new();
        if self
            .reader
            .read_line(&mut text)
            .context("no answer from the virtual machine")?
            == 0
        {
            bail!("the virtual machine has ended");
        }
        Ok(text.trim_end().to_owned())
    }
}

/// The folder with kernel and initramfs, made if it is not there.
fn image() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/build");
    let done = Command::new(&script)
        .stderr(std::process::Stdio::inherit())
        .output();
    let done = done.with_context(|| format!("cannot run {}", script.display()))?;
    if !done.status.success() {
        bail!("{} failed ({})", script.display(), done.status);
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&done.stdout).trim()))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let octet = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_there_and_back() {
        assert_eq!(hex(b"home"), "686f6d65");
        let octets: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&octets)), Some(octets));
        assert_eq!(unhex("6"), None);
        assert_eq!(unhex("6x"), None);
    }
}
