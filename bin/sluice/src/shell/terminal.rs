//! The line that is typed: editing, history, completion and `?`, by rustyline.

use config::completion::{Candidate, Line, fitting};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyEvent, RepeatCount,
};
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many lines are remembered.
const HISTORY: usize = 1000;
/// Where, in the user's home.
const HISTORY_FILE: &str = ".sluice_history";

/// Says what may come next after the words of a line, where this much of the next one is typed.
pub type Offers = Rc<dyn Fn(&[String], &str) -> Vec<Candidate>>;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// A whole line.
    Line(String),
    /// `?` behind this: what may come next is asked for.
    Question(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    End,
}

/// A terminal at which somebody types.
pub struct Terminal {
    editor: Editor<Completion, FileHistory>,
    question: Arc<AtomicBool>,
    history: Option<PathBuf>,
    /// What the next line begins with, after a question.
    begun: Cell<Option<String>>,
}

impl Terminal {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    /// It cannot be set.
    pub fn new(offers: Offers) -> Result<Self, String> {
        let config = Config::builder()
            .max_history_size(HISTORY)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(|error| error.to_string())?
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config)
            .map_err(|error| format!("the terminal cannot be used: {error}"))?;
        editor.set_helper(Some(Completion(offers)));
        let question = Arc::new(AtomicBool::new(false));
        let asked = Question(question.clone());
        editor.bind_sequence(
            KeyEvent::from('?'),
            EventHandler::Conditional(Box::new(asked)),
        );
        let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE));
        if let Some(file) = &history {
            let _ = editor.load_history(file); // there may be none yet
        }
        Ok(Terminal {
            editor,
            question,
            history,
            begun: Cell::new(None),
        })
    }

    /// Waits for a line.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn read(&mut self, prompt: &str) -> Result<Typed, String> {
        let begun = self.begun.take().unwrap_or_default();
        match self.editor.readline_with_initial(prompt, (&begun, "")) {
            Ok(line) if self.question.swap(false, Ordering::Relaxed) => {
                self.begun.set(Some(line.clone()));
                Ok(Typed::Question(line))
            }
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(format!("the terminal is gone: {error}")),
        }
    }

    /// Remembers a line for the next time. Not for lines with secrets.
    pub fn remember(&mut self, line: &str) {
        let _ = self.editor.add_history_entry(line);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(file) = &self.history {
            let _ = self.editor.save_history(file); // a home that cannot be written to has no history
        }
    }
}

struct Completion(Offers);

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let line = Line::read(&line[..position]);
        let words = fitting((self.0)(&line.words, &line.typed), &line.typed)
            .into_iter()
            .filter(Candidate::is_word);
        let pair = |c: Candidate| Pair {
            display: c.word.clone(),
            replacement: c.word + " ",
        };
        Ok((line.begins, words.map(pair).collect()))
    }
}

impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

/// `?` is an ordinary letter within quotes; anywhere else it asks.
struct Question(Arc<AtomicBool>);

impl ConditionalEventHandler for Question {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let quotes = context.line()[..context.pos()].matches('"').count();
        if quotes % 2 == 1 {
            return None;
        }
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}
