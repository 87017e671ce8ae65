//! The whole terminal, drawn again and again, and left as it was found.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::{cursor, queue, terminal};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::LazyLock;
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
        Ok(match event(patience)? {
            Some(Event::Key(key)) if key.kind != KeyEventKind::Release => known(key),
            Some(Event::Resize(..)) => Some(Key::Resized),
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

/// Waits so long for something to happen at the terminal, of whose keys we hear.
///
/// # Errors
/// The terminal is gone. Who asks crossterm alone does not hear of that, and is busy for ever.
pub fn event(patience: Duration) -> io::Result<Option<Event>> {
    watch(Duration::ZERO)?;
    if !poll(Duration::ZERO)? {
        watch(patience)?;
        if !poll(Duration::ZERO)? {
            return Ok(None);
        }
    }
    read().map(Some)
}

/// Waits so long for something to read from the terminal, or for a signal: it may have another size.
fn watch(patience: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let opened;
    let terminal = match stdin.is_terminal() {
        true => stdin.as_fd(),
        false => {
            opened = File::open("/dev/tty")?;
            opened.as_fd()
        }
    };
    let mut watched = [PollFd::new(terminal, PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    match nix::poll::poll(&mut watched, timeout) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    match watched[0].revents() {
        Some(seen) if seen.intersects(gone) => Err(io::Error::new(
            ErrorKind::BrokenPipe,
            "the terminal is gone",
        )),
        _ => Ok(()),
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

/// Signals that ask for an end: Ctrl-C, that of kill(1), and that of a terminal that hangs up.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Nobody listens: the signals do what they do by default.
static IDLE: AtomicBool = AtomicBool::new(true);
/// One of them came while somebody listened.
static ASKED: AtomicBool = AtomicBool::new(false);
/// And it was one that is meant for the whole program.
static TOLD_TO_END: AtomicBool = AtomicBool::new(false);

/// Notices that somebody wants an end, instead of being killed by it.
#[derive(Debug)]
pub struct Interrupt(());

impl Interrupt {
    /// From now on, until this is dropped.
    pub fn listen() -> io::Result<Self> {
        // a handler that is taken away leaves the signal ignored: these stay, and know whether they are wanted
        static REGISTERED: LazyLock<io::Result<()>> = LazyLock::new(register);
        if let Err(error) = &*REGISTERED {
            return Err(io::Error::new(error.kind(), error.to_string()));
        }
        ASKED.store(false, Ordering::SeqCst);
        IDLE.store(false, Ordering::SeqCst);
        Ok(Interrupt(()))
    }

    /// Somebody wants an end.
    pub fn is_asked(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }

    /// What was asked for is being done: listens for another one.
    pub fn listen_again(&self) {
        ASKED.store(false, Ordering::SeqCst);
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        IDLE.store(true, Ordering::SeqCst);
    }
}

/// Whether SIGTERM or SIGHUP came while somebody listened.
pub fn is_told_to_end() -> bool {
    TOLD_TO_END.load(Ordering::SeqCst)
}

fn register() -> io::Result<()> {
    for signal in SIGNALS {
        flag::register_conditional_default(signal, &IDLE)?;
        flag::register(signal, &ASKED)?;
    }
    flag::register(SIGTERM, &TOLD_TO_END)?;
    flag::register(SIGHUP, &TOLD_TO_END)?;
    Ok(())
}
