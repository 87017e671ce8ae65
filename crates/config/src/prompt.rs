//! Passwords that a command asks for. They are never arguments: every user of the machine can read those.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Stdin, Write};

/// Reads a password of at most `longest` octets. On a terminal it is typed unseen, twice if it must be right. Elsewhere it is the first
/// line of the input.
///
/// # Errors
/// The password is empty, too long, or has control characters; the two that were typed differ; or what the system says.
pub fn password(twice: bool, longest: usize) -> io::Result<String> {
    let input = io::stdin();
    match input.is_terminal() {
        true => asked(&input, twice, longest),
        false => first_line(input.lock(), longest),
    }
}

fn asked(terminal: &Stdin, twice: bool, longest: usize) -> io::Result<String> {
    let unseen = Unseen::begin(terminal)?;
    let ask = |prompt: &str| {
        eprint!("{prompt}");
        io::stderr().flush()?;
        let line = first_line(terminal.lock(), longest);
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
fn first_line(input: impl BufRead, longest: usize) -> io::Result<String> {
    let mut line = String::new();
    input.take(longest as u64 + 2).read_line(&mut line)?;
    let password = line.trim_end_matches(['\r', '\n']);
    match password.len() {
        _ if password.contains(char::is_control) => {
            Err(io::Error::other("it has control characters"))
        }
        0 => Err(io::Error::other("the input is empty")),
        length if length <= longest => Ok(password.to_owned()),
        _ => Err(io::Error::other(format!(
            "it has more than {longest} octets"
        ))),
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
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Unseen { terminal, before })
    }
}

impl Drop for Unseen<'_> {
    fn drop(&mut self) {
        // Without the terminal there is nothing to put back.
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line() {
        let read = |text: &str| first_line(text.as_bytes(), 255).map_err(|error| error.to_string());
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
