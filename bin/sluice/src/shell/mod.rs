//! The interactive command line: the commands of [`crate::cli`] with history, completion, `?` and pipes, and `configure`.
//!
//! Without a terminal it reads commands line by line and ends at the first one that fails.

mod candidate;
mod complete;
mod configure;
mod pager;
mod pipe;
mod terminal;

use crate::cli::{Answer, Cli, Failure, Sockets};
use clap::{CommandFactory, Parser};
pub use complete::Candidate;
use complete::{fitting, listing, of_command, split};
use configure::{Configure, Next};
use pipe::Pipe;
use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use terminal::{Terminal, Typed};

/// The commands that there are only here, with what each does.
const COMMANDS: [(&str, &str); 3] = [
    (
        "configure",
        "Change the configuration; `configure exclusive` keeps everybody else out",
    ),
    ("exit", "Leave"),
    (
        "help",
        "What can be typed; `?` behind any word says what may follow",
    ),
];

/// Serves whoever types, or whatever is on standard input. `configuring` begins in `configure`, exclusively or not.
pub fn run(sockets: Sockets, configuring: Option<bool>) -> ExitCode {
    let session = Rc::new(RefCell::new(Session {
        sockets,
        configure: None,
    }));
    if let Some(exclusive) = configuring {
        let begun = Configure::begin(&session.borrow().sockets, exclusive);
        match begun {
            Ok(configure) => session.borrow_mut().configure = Some(configure),
            Err(failure) => return failure.report(),
        }
    }
    match std::io::stdin().is_terminal() {
        true => interact(&session, configuring.is_some()),
        false => script(&mut session.borrow_mut()),
    }
}

/// Commands line by line, up to the first that fails.
fn script(session: &mut Session) -> ExitCode {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match session.line(line) {
            Ok(false) => {}
            Ok(true) => return ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("sluice: `{}`:", session.without_secret(line));
                return failure.report();
            }
        }
    }
    if session.configure.as_ref().is_some_and(|c| c.changes() > 0) {
        eprintln!(
            "sluice: edits were not committed and are forgotten: the last line is to be `commit`"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What somebody types, until they leave. `once` leaves with `configure`.
fn interact(session: &Rc<RefCell<Session>>, once: bool) -> ExitCode {
    let offering = session.clone();
    let terminal = Terminal::new(Rc::new(move |words: &[String]| {
        offering.borrow().offers(words)
    }));
    let mut terminal = match terminal {
        Ok(terminal) => terminal,
        Err(why) => return Failure::Other(why).report(),
    };
    loop {
        let prompt = session.borrow().prompt();
        let line = match terminal.read(&prompt) {
            Ok(Typed::Line(line)) => line,
            Ok(Typed::Question(line)) => {
                let _ = pager::print(&session.borrow().explain(&line), true);
                continue;
            }
            Ok(Typed::Interrupted) => continue,
            Ok(Typed::End) => "exit".into(),
            Err(why) => return Failure::Other(why).report(),
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if session.borrow().without_secret(line) == line {
            terminal.remember(line);
        }
        let was_configuring = session.borrow().configure.is_some();
        match session.borrow_mut().line(line) {
            Ok(true) => return ExitCode::SUCCESS,
            Ok(false) => {}
            Err(failure) => println!("{failure}"),
        }
        if once && was_configuring && session.borrow().configure.is_none() {
            return ExitCode::SUCCESS;
        }
    }
}

/// Where somebody is who types.
struct Session {
    sockets: Sockets,
    configure: Option<Configure>,
}

impl Session {
    fn prompt(&self) -> String {
        match &self.configure {
            Some(configure) => format!("{}\nsluice# ", configure.here()),
            None => "sluice> ".into(),
        }
    }

    /// The line without the secret that it sets.
    fn without_secret(&self, line: &str) -> String {
        let words = config::words(line).unwrap_or_default();
        let secret = self
            .configure
            .as_ref()
            .is_some_and(|c| c.has_secret(&words));
        match (secret, words.split_last()) {
            (true, Some((_, place))) => format!("{} {}", place.join(" "), config::MASK),
            _ => line.into(),
        }
    }

    /// Does what a line says, and shows it; true: it was the last one.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        let (command, pipes) = pipe::parse(line).map_err(Failure::Other)?;
        let seconds = pipes.iter().find_map(|pipe| match pipe {
            Pipe::Watch(seconds) => Some(*seconds),
            _ => None,
        });
        let Some(seconds) = seconds else {
            return self.once(&command, &pipes);
        };
        // Ctrl-C ends the watching, not the session
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let registered = signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
            .map_err(|error| Failure::Other(error.to_string()))?;
        let mut done = Ok(false);
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            print!("\x1b[H\x1b[J");
            done = self.once(&command, &pipes);
            if done.is_err() {
                break;
            }
            let until = std::time::Instant::now() + Duration::from_secs(seconds);
            while std::time::Instant::now() < until
                && !stop.load(std::sync::atomic::Ordering::Relaxed)
            {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        signal_hook::low_level::unregister(registered);
        done
    }

    fn once(&mut self, command: &[String], pipes: &[Pipe]) -> Result<bool, Failure> {
        let mut pipes = pipes.to_vec();
        let mut command = command.to_vec();
        // `show | compare 3` is the word of other gateways for it
        if self.configure.is_some()
            && command == ["show"]
            && let Some(Pipe::Compare(version)) = pipes.first().cloned()
        {
            command = vec!["compare".into()];
            command.extend(version.map(|v| v.to_string()));
            pipes.remove(0);
        }
        let (answer, last) = match &mut self.configure {
            Some(configure) => match configure.run(&command)? {
                Next::Stay(answer) => (answer, false),
                Next::Run(outside) => (self.outside(&outside, &pipes)?, false),
                Next::Leave(answer) => {
                    self.configure = None;
                    (answer, false)
                }
            },
            None => match command.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["exit" | "quit"] => return Ok(true),
                ["configure"] => (self.enter(false)?, false),
                ["configure", "exclusive"] => (self.enter(true)?, false),
                ["help"] => (Answer::of(self.explain("")), false),
                _ => (self.outside(&command, &pipes)?, false),
            },
        };
        let table = answer.table;
        let lines = pipe::apply(&pipes, answer.lines, table);
        let pause = !pipes
            .iter()
            .any(|pipe| matches!(pipe, Pipe::NoMore | Pipe::Watch(_)));
        pager::print(&lines, pause)?;
        answer.failure.map_or(Ok(last), Err)
    }

    fn enter(&mut self, exclusive: bool) -> Result<Answer, Failure> {
        self.configure = Some(Configure::begin(&self.sockets, exclusive)?);
        Ok(Answer::default())
    }

    /// A command as it could be typed behind `sluice` in a shell.
    fn outside(&self, command: &[String], pipes: &[Pipe]) -> Result<Answer, Failure> {
        let json = pipes.contains(&Pipe::Json).then(|| "--json".to_owned());
        let words = std::iter::once("sluice".to_owned())
            .chain(command.iter().cloned())
            .chain(json);
        match Cli::try_parse_from(words) {
            Ok(cli) => cli.answer(&self.sockets),
            Err(error) => {
                let text = error.render().to_string();
                let lines: Vec<&str> = text.trim_end().lines().collect();
                match error.use_stderr() {
                    true => Err(Failure::Other(lines.join("\n"))),
                    false => Ok(Answer::of(lines.into_iter().map(str::to_owned).collect())),
                }
            }
        }
    }

    /// What may come next after the words of a line.
    fn offers(&self, words: &[String]) -> Vec<Candidate> {
        if let Some(at) = words.iter().rposition(|word| word == "|") {
            let pipes = pipe::PIPES
                .iter()
                .map(|(word, help)| Candidate::new(*word, *help));
            return if at + 1 == words.len() {
                pipes.collect()
            } else {
                Vec::new()
            };
        }
        match &self.configure {
            Some(configure) => configure.offers(words, &|words| self.outside_offers(words)),
            None => {
                let mut all = self.outside_offers(words);
                match words {
                    [] => all.extend(COMMANDS.map(|(word, help)| Candidate::new(word, help))),
                    [one] if one == "configure" => {
                        all.push(Candidate::new("exclusive", "Keep everybody else out"))
                    }
                    _ => {}
                }
                all
            }
        }
    }

    fn outside_offers(&self, words: &[String]) -> Vec<Candidate> {
        let mut command = Cli::command();
        command.build();
        let mut all = of_command(&command, words, &|kind| self.sockets.names(kind));
        let outer = words.is_empty();
        all.retain(|c| {
            !(outer
                && (c.word.starts_with("--") || ["configure", "help"].contains(&c.word.as_str())))
        });
        all
    }

    /// What may come next, for `?`.
    fn explain(&self, line: &str) -> Vec<String> {
        let (words, typed) = split(line);
        let all = fitting(self.offers(&words), &typed);
        if all.is_empty() {
            return vec!["  nothing more; enter does it".into()];
        }
        listing(&all, pager::width())
    }
}
