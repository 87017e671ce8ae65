//! The interactive command line: the commands of [`crate::cli`] with history, completion, `?` and pipes, and `configure`.
//!
//! Without a terminal it reads commands line by line and ends at the first one that fails.

mod candidate;
mod complete;
mod configure;
mod pager;
mod pipe;
mod secret;
mod terminal;

use crate::cli::{Answer, Cli, Failure, Sockets};
use crate::screen::{Interrupt, is_told_to_end};
use clap::{CommandFactory, Parser};
use complete::{listing, of_command};
use config::completion::{Candidate, Line, fitting};
use configure::{Configure, Next};
use pipe::Pipe;
use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};
use terminal::{Terminal, Typed};

/// How long Ctrl-C may wait while somebody watches.
const LOOK: Duration = Duration::from_millis(50);

/// The commands that there are only here, with what each does.
const COMMANDS: [(&str, &str); 3] = [
    (
        "configure",
        "Change the configuration; `configure exclusive` locks it",
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
    for line in std::io::stdin().lock().lines() {
        let line = match &line {
            Ok(line) => line.trim(),
            Err(error) => {
                eprintln!(
                    "sluice: the next line cannot be read, and none behind it was done: {error}"
                );
                return ExitCode::FAILURE;
            }
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match session.line(line) {
            Ok(false) if is_told_to_end() => return ExitCode::FAILURE,
            Ok(false) => {}
            Ok(true) => return ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("sluice: `{}`:", secret::without(line));
                return failure.report();
            }
        }
    }
    let forgotten = session.configure.as_ref().and_then(Configure::forgotten);
    forgotten.map_or(ExitCode::SUCCESS, |failure| failure.report())
}

/// What somebody types, until they leave. `once` leaves with `configure`.
fn interact(session: &Rc<RefCell<Session>>, once: bool) -> ExitCode {
    let offering = session.clone();
    let terminal = Terminal::new(Rc::new(move |words: &[String], typed: &str| {
        offering.borrow().offers(words, typed)
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
        if secret::without(line) == line {
            terminal.remember(line);
        }
        let was_configuring = session.borrow().configure.is_some();
        match session.borrow_mut().line(line) {
            Ok(true) => return ExitCode::SUCCESS,
            Ok(false) => {}
            Err(failure) => println!("{failure}"),
        }
        if is_told_to_end() {
            return ExitCode::FAILURE;
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

    /// Does what a line says, and shows it; true: it was the last one.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        let (mut command, mut pipes) = pipe::parse(line).map_err(|why| {
            Failure::Other(match secret::without(line) == line {
                true => why,
                false => {
                    "this cannot be read: a text with blanks needs quotes, `\"` at both ends".into()
                }
            })
        })?;
        // `show | compare 3` is the word of other gateways for it
        if self.configure.is_some()
            && command == ["show"]
            && let Some(Pipe::Compare(version)) = pipes.first().cloned()
        {
            command = vec!["compare".into()];
            command.extend(version.map(|v| v.to_string()));
            pipes.remove(0);
        }
        pipe::fit(&command, &pipes).map_err(Failure::Other)?;
        let seconds = pipes.iter().find_map(|pipe| match pipe {
            Pipe::Watch(seconds) => Some(*seconds),
            _ => None,
        });
        match seconds {
            Some(seconds) => self.watch(&command, &pipes, Duration::from_secs(seconds)),
            None => self.once(&command, &pipes),
        }
    }

    /// Again and again, until Ctrl-C, which ends the watching and not the session.
    fn watch(
        &mut self,
        command: &[String],
        pipes: &[Pipe],
        interval: Duration,
    ) -> Result<bool, Failure> {
        let interrupt = Interrupt::listen()?;
        while !interrupt.is_asked() {
            print!("\x1b[H\x1b[J");
            self.once(command, pipes)?;
            let until = Instant::now() + interval;
            while Instant::now() < until && !interrupt.is_asked() {
                std::thread::sleep(LOOK);
            }
        }
        Ok(false)
    }

    fn once(&mut self, command: &[String], pipes: &[Pipe]) -> Result<bool, Failure> {
        let json = pipes.contains(&Pipe::Json);
        let (mut answer, last) = match &mut self.configure {
            Some(configure) => match configure.run(command, json)? {
                Next::Stay(answer) => (answer, false),
                Next::Run(outside) => (self.outside(&outside, json)?, false),
                Next::Leave(failure) => {
                    self.configure = None;
                    let answer = Answer {
                        failure,
                        ..Answer::default()
                    };
                    (answer, false)
                }
            },
            None => match command.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["exit" | "quit"] => return Ok(true),
                ["configure"] => (self.enter(false)?, false),
                ["configure", "exclusive"] => (self.enter(true)?, false),
                ["help"] => (Answer::of(self.explain("")), false),
                _ => (self.outside(command, json)?, false),
            },
        };
        let failure = answer.failure.take();
        let pause = !pipes
            .iter()
            .any(|pipe| matches!(pipe, Pipe::NoMore | Pipe::Watch(_)));
        pager::print(&pipe::apply(pipes, answer), pause)?;
        failure.map_or(Ok(last), Err)
    }

    fn enter(&mut self, exclusive: bool) -> Result<Answer, Failure> {
        self.configure = Some(Configure::begin(&self.sockets, exclusive)?);
        Ok(Answer::default())
    }

    /// A command as it could be typed behind `sluice` in a shell.
    fn outside(&self, command: &[String], json: bool) -> Result<Answer, Failure> {
        let json = json.then(|| "--json".to_owned());
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

    /// What may come next after the words of a line, where this much of the next one is typed.
    fn offers(&self, words: &[String], typed: &str) -> Vec<Candidate> {
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
            Some(configure) => configure.offers(words, &|words| self.outside_offers(words, typed)),
            None => {
                let mut all = self.outside_offers(words, typed);
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

    fn outside_offers(&self, words: &[String], typed: &str) -> Vec<Candidate> {
        let mut command = Cli::command();
        command.build();
        let mut all = of_command(&command, words, &|kind| self.sockets.names(kind, typed));
        let outer = words.is_empty();
        all.retain(|c| {
            !(outer
                && (c.word.starts_with("--") || ["configure", "help"].contains(&c.word.as_str())))
        });
        all
    }

    /// What may come next, for `?`.
    fn explain(&self, line: &str) -> Vec<String> {
        let Line { words, typed, .. } = Line::read(line);
        let all = fitting(self.offers(&words, &typed), &typed);
        if all.is_empty() {
            return vec!["  nothing more; enter does it".into()];
        }
        listing(&all, pager::width())
    }
}
