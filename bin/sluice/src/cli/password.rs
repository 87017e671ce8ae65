//! `sluice hash-password`: a hash for `users NAME password-hash`.

use super::Failure;
use super::show::print_lines;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Stdin, Write};

/// Longest password in octets: what fits into the field of a PAP request (RFC 1334 §2.2.1).
const LONGEST: usize = 255;

/// Asks for a password, twice and unseen on a terminal, and prints its hash. Elsewhere the password is the first line of the input.
pub(super) fn hash() -> Result<(), Failure> {
    let password = read(true)?;
    let hash = config::password::hash(password.as_bytes()).map_err(Failure::Other)?;
    print_lines(&[hash])
}

/// A password that is typed unseen on a terminal, twice if it must be right; elsewhere the first line of the input.
pub(super) fn read(twice: bool) -> Result<String, Failure> {
    let input = io::stdin();
    let password = match input.is_terminal() {
        true => asked(&input, twice),
        false => first_line(input.lock()),
    };
    password.map_err(|error| Failure::Other(format!("no password: {error}")))
}

fn asked(terminal: &Stdin, twice: bool) -> io::Result<String> {
    let unseen = Unseen::begin(terminal)?;
    let ask = |prompt: &str| {
        eprint!("{prompt}");
        io::stderr().flush()?;
        let line = first_line(terminal.lock());
        eprintln!(); // the terminal has not shown the one that was typed
        line
    };
    let password = ask("Password: ")?;
    let again = match twice {
        true => ask("Once more: ")?,
        false => password.clone(),
    };
    drop(unseen);
    match password == again {
        true => Ok(password),
        false => Err(io::Error::other("the two differ")),
    }
}

/// First line of an input, without its end.
fn first_line(input: impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LONGEST as u64 + 2).read_line(&mut line)?;
    let password = line.trim_end_matches(['\r', '\n']);
    match password.len() {
        _ if password.contains(char::is_control) => {
            Err(io::Error::other("it has control characters"))
        }
        0 => Err(io::Error::other("the input is empty")),
        1..=LONGEST => Ok(password.to_owned()),
        _ => {
            let why = format!("it has more than {LONGEST} octets, and PAP carries no more");
            Err(io::Error::other(why))
        }
    }
}

/// Terminal that does not show what is typed, as long as this lives.
struct Unseen<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> Unseen<'a> {
    fn begin(terminal: &'a Stdin) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        // An interrupt would leave the terminal mute: like getpass(3), it is read as a character, which is refused.
        silent
            .local_flags
            .remove(LocalFlags::ECHO | LocalFlags::ISIG);
        tcsetattr(terminal, SetArg::TCSAFLUSH, &silent)?;
        Ok(Unseen { terminal, before })
    }
}

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        // Without the terminal there is nothing to put back.
        let _ = tcsetattr(self.terminal, SetArg::TCSAFLUSH, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line() {
        let read = |text: &str| first_line(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read("a long one\nmore\n").as_deref(), Ok("a long one"));
        assert_eq!(read(" kept \r\n").as_deref(), Ok(" kept "));
        assert_eq!(read("no end").as_deref(), Ok("no end"));
        assert!(read("abc\u{3}\n").unwrap_err().contains("control"));
        assert!(read("").unwrap_err().contains("empty"));
        assert!(read("\n").unwrap_err().contains("empty"));
        assert_eq!(read(&"x".repeat(255)).map(|p| p.len()), Ok(255));
        assert!(read(&"x".repeat(256)).unwrap_err().contains("255 octets"));
    }
}
