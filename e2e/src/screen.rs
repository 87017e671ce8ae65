//! A terminal that somebody types at.

use crate::guard::PATIENCE;
use anyhow::{Context, Result, bail, ensure};
use lab::process::Process;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A terminal that somebody types at, by tmux; ended when dropped.
pub struct Screen {
    socket: PathBuf,
    server: Process,
}

impl Screen {
    /// A terminal of so many columns and rows, in which this line runs.
    pub fn open(socket: PathBuf, width: u32, height: u32, command: &str) -> Result<Self> {
        let home = socket.parent().context("a folder")?;
        // In the foreground, so that whoever clears up after a run that was killed finds it.
        let mut server = tmux(&socket)?;
        server.arg("-D");
        let mut server = Process::spawn(home, "tmux", server)?;
        server.wait_until("its socket", PATIENCE, || {
            UnixStream::connect(&socket).is_ok()
        })?;
        let screen = Screen { socket, server };
        let (width, height) = (width.to_string(), height.to_string());
        screen.tmux(&["new-session", "-d", "-x", &width, "-y", &height, command])?;
        Ok(screen)
    }

    /// Has tmux do something.
    pub fn tmux(&self, words: &[&str]) -> Result<String> {
        let done = tmux(&self.socket)?.args(words).output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "tmux {words:?}: {said}");
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Types; the names of keys, such as `Tab`, are pressed.
    pub fn keys(&self, keys: &[&str]) -> Result<()> {
        for key in keys {
            let named = ["Tab", "Enter", "Space", "Up", "Right", "C-c", "C-u", "C-l"].contains(key);
            match named {
                true => self.tmux(&["send-keys", key])?,
                false => self.tmux(&["send-keys", "-l", key])?,
            };
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Clears it, and waits until nothing but a prompt, of one line or two, is left.
    pub fn clear(&self) -> Result<()> {
        self.keys(&["C-l"])?;
        let start = Instant::now();
        while self.shown()?.trim_end().lines().count() > 2 {
            ensure!(
                start.elapsed() < PATIENCE,
                "it is not cleared:\n{}",
                self.shown()?
            );
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// What is on it.
    pub fn shown(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen has this on it; with `$` behind it, at the end of the last line.
    pub fn wait(&self, what: &str) -> Result<String> {
        let start = Instant::now();
        loop {
            let shown = self.shown()?;
            let there = match what.strip_suffix(" $") {
                Some(last) => shown.trim_end().ends_with(last),
                None => shown.contains(what),
            };
            if there {
                return Ok(shown);
            }
            if start.elapsed() > PATIENCE {
                bail!("the screen does not show `{what}`:\n{shown}");
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// What is on it once that does not change any more.
    pub fn settled(&self) -> Result<String> {
        let start = Instant::now();
        let mut last = self.shown()?;
        loop {
            sleep(Duration::from_millis(300));
            let shown = self.shown()?;
            if shown == last {
                return Ok(shown);
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "the screen does not come to rest:\n{shown}"
            );
            last = shown;
        }
    }

    /// Waits until the program has left by itself.
    pub fn wait_for_end(self) -> Result<()> {
        let start = Instant::now();
        while self.shown().is_ok() {
            ensure!(
                start.elapsed() < PATIENCE,
                "it has not left:\n{}",
                self.shown()?
            );
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Ends it with what runs in it. Its server is gone then: another one can have the socket.
    pub fn close(mut self) -> Result<()> {
        self.tmux(&["kill-server"])?;
        self.server.stop()
    }
}

/// tmux with a server at this socket, in whose folder programs keep what they remember.
fn tmux(socket: &Path) -> Result<Command> {
    let mut command = Command::new("tmux");
    command.env("HOME", socket.parent().context("a folder")?);
    command.arg("-S").arg(socket).args(["-f", "/dev/null"]);
    Ok(command)
}

/// Compares a screen with the one that is kept as `snapshots/NAME.txt`; with `SNAPSHOTS=write` it is kept instead.
pub fn snapshot(name: &str, shown: &str) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let file = folder.join(name).with_extension("txt");
    let shown = format!("{}\n", shown.trim_end());
    if std::env::var_os("SNAPSHOTS").is_some_and(|word| word == "write") {
        fs::create_dir_all(folder)?;
        return Ok(fs::write(file, shown)?);
    }
    let kept = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    ensure!(
        kept == shown,
        "the screen is not as {} has it (SNAPSHOTS=write keeps what is shown now):\n{shown}",
        file.display()
    );
    Ok(())
}
