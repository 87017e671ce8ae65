//! Long answers, a screen at a time.

use crate::screen::event;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// What the line below a full screen says.
const MORE: &str = "--more-- (space: a screen, enter: a line, q: enough)";

/// For how long nobody may touch the keyboard until we look whether it is still there.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many columns there are; without a terminal, as many as one usually has.
pub fn width() -> usize {
    size().map_or(80, |(width, _)| usize::from(width)).max(1)
}

/// Prints lines; on a terminal it waits after each screen.
///
/// # Errors
/// The output is gone.
pub fn print(lines: &[String], pause: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let height = size()
        .map_or(0, |(_, height)| usize::from(height))
        .saturating_sub(1);
    let interactive =
        pause && io::stdout().is_terminal() && io::stdin().is_terminal() && height > 1;
    let mut room = if interactive { height } else { usize::MAX };
    let width = width();
    for line in lines {
        if room == 0 {
            room = match wait(&mut out, height)? {
                0 => return Ok(()),
                more => more,
            };
        }
        writeln!(out, "{line}")?;
        let rows = line.chars().count().div_ceil(width).max(1); // the terminal breaks what is too long
        room = room.saturating_sub(rows);
    }
    out.flush()
}

/// How many more lines are wanted; 0: none.
fn wait(out: &mut impl Write, height: usize) -> io::Result<usize> {
    write!(out, "{MORE}")?;
    out.flush()?;
    enable_raw_mode()?;
    let wanted = loop {
        match event(PATIENCE) {
            Ok(Some(Event::Key(KeyEvent {
                code, modifiers, ..
            }))) => match code {
                KeyCode::Char(' ') | KeyCode::PageDown => break Ok(height),
                KeyCode::Enter | KeyCode::Down => break Ok(1),
                KeyCode::Char('q') | KeyCode::Esc => break Ok(0),
                KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => break Ok(0),
                _ => {}
            },
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    disable_raw_mode()?;
    let blank = " ".repeat(MORE.len());
    write!(out, "\r{blank}\r")?;
    wanted
}
