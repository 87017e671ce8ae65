//! A terminal that somebody types at.

use crate::site::program;
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A terminal that somebody types at, by tmux.
pub struct Screen {
    socket: PathBuf,
}

impl Screen {
    /// A terminal of so many columns and rows, in which `sluice` runs with these words.
    pub fn open(socket: PathBuf, width: u32, height: u32, words: &[&str]) -> Result<Self> {
        let screen = Screen { socket };
        let command = format!("'{}' {}", program("sluice")?.display(), words.join(" "));
        let (width, height) = (width.to_string(), height.to_string());
        screen.tmux(&["new-session", "-d", "-x", &width, "-y", &height, &command])?;
        Ok(screen)
    }

    /// Has tmux do something.
    pub fn tmux(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.env("HOME", self.socket.parent().context("a folder")?);
        let done = command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(words)
            .output()?;
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

    /// Clears it.
    pub fn clear(&self) -> Result<()> {
        self.keys(&["C-l"])
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
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the screen does not show `{what}`:\n{shown}");
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the program has left by itself.
    pub fn wait_for_end(self) -> Result<()> {
        let start = Instant::now();
        while self.shown().is_ok() {
            ensure!(
                start.elapsed() < Duration::from_secs(10),
                "it has not left:\n{}",
                self.shown()?
            );
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Ends it with what runs in it.
    pub fn close(&self) -> Result<()> {
        self.tmux(&["kill-server"]).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
