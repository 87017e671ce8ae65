//! The whole terminal, drawn again and again, and left as it was found.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::{cursor, queue, terminal};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Columns and rows of the terminal.
pub fn size() -> io::Result<(usize, usize)> {
    let (width, height) = terminal::size()?;
    Ok((width.into(), height.into()))
}

/// A terminal that shows one picture after the other. It is the shell's again when this is dropped.
#[derive(Debug, Default)]
pub struct Screen {
    entered: bool,
    keys: bool,
}

impl Screen {
    /// A screen that hears of keys ([`Screen::key`]), Ctrl-C among them.
    pub fn with_keys() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        Ok(Screen {
            entered: false,
            keys: true,
        })
    }

    /// Shows these lines, which fit.
    pub fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !self.entered {
            queue!(out, terminal::EnterAlternateScreen, cursor::Hide)?;
            self.entered = true;
        }
        queue!(out, cursor::MoveTo(0, 0))?;
        for (row, line) in lines.iter().enumerate() {
            queue!(out, cursor::MoveTo(0, row as u16))?;
            write!(out, "{line}")?;
            queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
        }
        queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
        out.flush()
    }

    /// Gives the terminal back; the next picture takes it again.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
            let mut out = io::stdout().lock();
            let _ = queue!(out, terminal::LeaveAlternateScreen, cursor::Show);
            let _ = out.flush();
        }
    }

    /// Waits so long for something to be done at the terminal.
    pub fn key(&self, patience: Duration) -> io::Result<Option<Key>> {
        if !poll(patience)? {
            return Ok(None);
        }
        Ok(match read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => known(key),
            Event::Resize(..) => Some(Key::Resized),
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
        if self.keys {
            let _ = terminal::disable_raw_mode();
        }
    }
}

/// What was done at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// q, Escape or Ctrl-C.
    Leave,
    /// An arrow to the left or up.
    Back,
    /// An arrow to the right or down.
    On,
    /// It has another size now.
    Resized,
}

fn known(key: KeyEvent) -> Option<Key> {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Leave),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Leave),
        KeyCode::Left | KeyCode::Up => Some(Key::Back),
        KeyCode::Right | KeyCode::Down => Some(Key::On),
        _ => None,
    }
}

/// Notices that somebody wants an end (Ctrl-C, SIGTERM, a terminal that hangs up), instead of being killed by it.
#[derive(Debug)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Interrupt {
    /// From now on, until this is dropped.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let mut listening = Interrupt {
            asked,
            registered: Vec::new(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let id = signal_hook::flag::register(signal, listening.asked.clone())?;
            listening.registered.push(id);
        }
        Ok(listening)
    }

    /// Somebody wants an end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
