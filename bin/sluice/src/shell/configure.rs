//! `configure`: a candidate is edited, compared, checked and committed.

use super::candidate::{Candidate, compare};
use crate::cli::units::counted;
use crate::cli::{Answer, Configuration, Failure, Sockets, not_there_yet};
use config::Verb;
use config::completion::{Candidate as Word, Places};
use northbound::{
    Change, CommitRequest, ConfigurationFault, ConfigurationLock, Edit, Edits, Effect, catalogue,
    change,
};
use serde_json::Value;

/// The commands, with what each does.
pub const COMMANDS: [(&str, &str); 15] = [
    (Verb::Set.word(), Verb::Set.about()),
    (Verb::Delete.word(), Verb::Delete.about()),
    ("edit", "Go to a place: commands then begin there"),
    ("up", "Go up by one"),
    ("top", "Go to the top"),
    (
        "show",
        "Show the candidate below here; `show | compare` what differs",
    ),
    ("commit", catalogue::COMMIT.about),
    ("rollback", "Make the candidate what a version was"),
    ("load", "Make the candidate what a file says"),
    ("save", "Write the candidate to a file, without its secrets"),
    ("discard", "Forget what was done to the candidate"),
    ("run", "A command from outside of `configure`"),
    ("versions", "The versions, and who made them when and why"),
    ("help", "What can be typed here"),
    ("exit", "Go up to where `edit` was typed, or leave"),
];
/// What `commit` knows, with what each does.
const COMMIT: [(&str, &str); 5] = [
    ("check", catalogue::COMMIT_CHECK.about),
    ("comment", "Say why: comment \"new homes in the east\""),
    ("confirm", catalogue::COMMIT_CONFIRM.about),
    (
        "confirmed",
        "It has to be confirmed within 10 minutes, or as many as you say; else the one before comes back",
    ),
    ("ending-sessions", "It may end sessions"),
];
/// Minutes that `commit confirmed` waits by default, as elsewhere.
const MINUTES: u32 = 10;

/// Somebody who edits.
pub struct Configure {
    configuration: Configuration,
    candidate: Candidate,
    lock: Option<ConfigurationLock>,
}

/// What becomes of the mode after a command.
pub enum Next {
    /// It goes on.
    Stay(Answer),
    /// The command is one from outside.
    Run(Vec<String>),
    /// It is left; why that is a pity.
    Leave(Option<Failure>),
}

impl Configure {
    /// Begins with what is in force; `exclusive` keeps everybody else out.
    pub fn begin(sockets: &Sockets, exclusive: bool) -> Result<Self, Failure> {
        let mut configuration = sockets.configuration()?;
        let lock = exclusive
            .then(|| configuration.ask(|c| c.lock()))
            .transpose()?;
        let candidate = current(&mut configuration)?;
        Ok(Configure {
            configuration,
            candidate,
            lock,
        })
    }

    /// Where one is, for the prompt.
    pub fn here(&self) -> String {
        match self.candidate.here.is_root() {
            true => "[edit]".into(),
            false => format!("[edit {}]", self.candidate.here),
        }
    }

    /// What is lost if it is left now.
    pub fn forgotten(&self) -> Option<Failure> {
        let edits = self.candidate.edits().len();
        let lost = || {
            let edits = counted(edits, "edit");
            Failure::Other(format!("not committed, and forgotten: {edits}"))
        };
        (edits > 0).then(lost)
    }

    /// Does what a line says.
    pub fn run(&mut self, line: &[String], json: bool) -> Result<Next, Failure> {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        if json && !matches!(words[..], ["show", ..] | ["versions"] | ["run", ..]) {
            let why = "there is no JSON of this: `show`, `versions` and what `run` asks have some";
            return Err(Failure::Other(why.into()));
        }
        let rest = line.get(1..).unwrap_or_default();
        let wrong = |why: String| Failure::Other(why);
        match words[..] {
            [] => {}
            ["set", ..] => self
                .candidate
                .edit(Verb::Set, rest)
                .map_err(|e| wrong(e.to_string()))?,
            ["delete"] if self.candidate.here.is_root() => {
                return Err(wrong(
                    "`delete` alone would delete everything: name what is to go".into(),
                ));
            }
            ["delete", ..] => self
                .candidate
                .edit(Verb::Delete, rest)
                .map_err(|e| wrong(e.to_string()))?,
            ["edit", ..] => self.candidate.go(rest).map_err(wrong)?,
            ["up"] => self.candidate.up(),
            ["top"] => self.candidate.here = config::Path::default(),
            ["show", ..] => return self.show(rest, json).map(Next::Stay),
            ["compare"] => return self.compare(None).map(Next::Stay),
            ["compare", version] => return self.compare(Some(number(version)?)).map(Next::Stay),
            ["commit", ..] => return self.commit(rest).map(Next::Stay),
            ["rollback"] => self.rollback(self.candidate.base)?,
            ["rollback", version] => self.rollback(number(version)?)?,
            ["load", file] => self.load(file)?,
            ["save", file] => return self.save(file).map(Next::Stay),
            ["discard"] => self.candidate = current(&mut self.configuration)?,
            ["versions"] => {
                return crate::cli::versions(&mut self.configuration, json).map(Next::Stay);
            }
            ["run", ..] => return Ok(Next::Run(rest.to_vec())),
            ["help"] => {
                let lines = COMMANDS.map(|(word, help)| format!("  {word:<10} {help}"));
                return Ok(Next::Stay(Answer::of(lines.into())));
            }
            ["exit" | "quit"] if !self.candidate.here.is_root() && words[0] == "exit" => {
                self.candidate.here = config::Path::default();
            }
            ["exit" | "quit"] => return Ok(Next::Leave(self.forgotten())),
            _ => {
                let known: Vec<&str> = COMMANDS.iter().map(|(word, _)| *word).collect();
                let typed = super::secret::without(&words.join(" "));
                return Err(wrong(format!(
                    "`{typed}` is not known here: expected one of {}",
                    known.join(", ")
                )));
            }
        }
        Ok(Next::Stay(Answer::default()))
    }

    fn show(&self, rest: &[String], json: bool) -> Result<Answer, Failure> {
        let path: config::Path = self
            .candidate
            .here
            .steps()
            .iter()
            .chain(rest)
            .cloned()
            .collect();
        let Some(tree) = self.candidate.below(rest) else {
            return Err(Failure::Other(format!("there is no `{path}`")));
        };
        // under the names above it, so that it is shown as what it is
        let tree = path.steps().iter().rev().fold(tree.clone(), |tree, step| {
            Value::Object([(step.clone(), tree)].into_iter().collect())
        });
        if json {
            return Answer::json(&config::masked(&tree));
        }
        let text = config::write(&tree, false);
        Ok(Answer::of(text.lines().map(str::to_owned).collect()))
    }

    /// Compares the candidate with a version, by default the one in force.
    pub fn compare(&mut self, version: Option<u64>) -> Result<Answer, Failure> {
        let other = self.configuration.ask(|c| c.get(version))?;
        Ok(Answer::of(compare(
            &tree(&other.tree)?,
            self.candidate.tree(),
        )))
    }

    fn rollback(&mut self, version: u64) -> Result<(), Failure> {
        let then = self.configuration.ask(|c| c.get(Some(version)))?;
        self.candidate.roll_back(version, tree(&then.tree)?);
        Ok(())
    }

    fn load(&mut self, file: &str) -> Result<(), Failure> {
        let text =
            std::fs::read_to_string(file).map_err(|e| Failure::Other(format!("{file}: {e}")))?;
        match config::check::read(&text) {
            Ok(checked) => {
                self.candidate.replace(checked.tree);
                Ok(())
            }
            Err(faults) => {
                let lines: Vec<String> = faults
                    .iter()
                    .map(|fault| format!("{file}: {fault}"))
                    .collect();
                Err(Failure::Other(lines.join("\n")))
            }
        }
    }

    fn save(&self, file: &str) -> Result<Answer, Failure> {
        let text = config::write(self.candidate.tree(), false);
        std::fs::write(file, text).map_err(|e| Failure::Other(format!("{file}: {e}")))?;
        Ok(Answer::of(vec![format!(
            "written to {file}, without the secrets"
        )]))
    }

    fn commit(&mut self, rest: &[String]) -> Result<Answer, Failure> {
        let mut request = CommitRequest {
            lock: self.lock.as_ref().map_or(0, |lock| lock.number),
            ..CommitRequest::default()
        };
        if rest == ["confirm"] {
            let kept = self.configuration.ask(|c| c.confirm(request.lock))?;
            return Ok(Answer::of(vec![format!("version {kept} is kept")]));
        }
        let mut check = false;
        let mut rest = rest.iter().map(String::as_str).peekable();
        while let Some(word) = rest.next() {
            match word {
                "check" => check = true,
                "comment" => {
                    let comment = rest
                        .next()
                        .ok_or(Failure::Other("`comment` wants a text".into()))?;
                    request.comment = comment.into();
                }
                "confirm" => {
                    let why =
                        "`commit confirm` stands alone: it keeps a version as that was committed";
                    return Err(Failure::Other(why.into()));
                }
                "confirmed" => {
                    let minutes = rest.next_if(|next| next.parse::<u32>().is_ok());
                    let minutes = minutes.map_or(Ok(MINUTES), str::parse).unwrap_or(MINUTES);
                    if minutes == 0 {
                        let why = "`commit confirmed 0` leaves no time: expected 1 minute or more";
                        return Err(Failure::Other(why.into()));
                    }
                    request.confirm_within = minutes.saturating_mul(60);
                }
                "ending-sessions" => request.end_sessions = true,
                other => {
                    let known: Vec<&str> = COMMIT.iter().map(|(word, _)| *word).collect();
                    let why = format!(
                        "`commit {other}` is not known: expected one of {}",
                        known.join(", ")
                    );
                    return Err(Failure::Other(why));
                }
            }
        }
        let change = self.change();
        if check {
            let would = self.configuration.ask(|c| c.check(change))?;
            refused(&would.faults)?;
            return Ok(Answer::of(effects("would do", &would.effects)));
        }
        let minutes = request.confirm_within / 60;
        request.change = Some(change);
        let done = self.configuration.ask(|c| c.commit(request))?;
        refused(&done.faults)?;
        let here = self.candidate.here.clone();
        self.candidate = current(&mut self.configuration)?;
        self.candidate.here = here;
        let mut lines = effects("does", &done.effects);
        lines.extend(done.pending.iter().map(|why| not_there_yet(why)));
        lines.push(format!("version {} is in force", done.version));
        if minutes > 0 {
            let time = crate::cli::units::duration(u64::from(minutes) * 60);
            lines.push(format!(
                "`commit confirm` keeps it; without that the one before comes back in {time}"
            ));
        }
        Ok(Answer::of(lines))
    }

    fn change(&self) -> Change {
        if let Some(version) = self.candidate.is_version() {
            return Change {
                change: Some(change::Change::Version(version)),
            };
        }
        let edits = self.candidate.edits().into_iter();
        let edits = edits.map(|edit| Edit {
            delete: edit.verb == Verb::Delete,
            words: edit.words.steps().to_vec(),
        });
        Change {
            change: Some(change::Change::Edits(Edits {
                base: self.candidate.base,
                edits: edits.collect(),
            })),
        }
    }

    /// What may follow these words.
    pub fn offers(&self, line: &[String], outside: &dyn Fn(&[String]) -> Vec<Word>) -> Vec<Word> {
        let table = |rows: &[(&str, &str)]| {
            rows.iter()
                .map(|(word, help)| Word::new(*word, *help))
                .collect()
        };
        let places = |there| Places {
            tree: self.candidate.tree(),
            here: &self.candidate.here,
            there,
        };
        match line {
            [] => table(&COMMANDS),
            [verb, rest @ ..] => match verb.as_str() {
                "set" | "edit" => places(false).after(rest),
                "delete" | "show" => places(true).after(rest),
                "commit" => table(&COMMIT),
                "run" => outside(rest),
                _ => Vec::new(),
            },
        }
    }
}

fn number(text: &str) -> Result<u64, Failure> {
    text.parse()
        .map_err(|_| Failure::Other(format!("`{text}` is no version: `versions` lists them")))
}

fn tree(json: &str) -> Result<Value, Failure> {
    serde_json::from_str(json)
        .map_err(|e| Failure::Other(format!("the configuration cannot be read: {e}")))
}

fn current(configuration: &mut Configuration) -> Result<Candidate, Failure> {
    let now = configuration.ask(|c| c.get(None))?;
    Ok(Candidate::new(now.version, tree(&now.tree)?))
}

fn refused(faults: &[ConfigurationFault]) -> Result<(), Failure> {
    if faults.is_empty() {
        return Ok(());
    }
    let line = |fault: &ConfigurationFault| match fault.path.as_str() {
        "" => fault.message.clone(),
        path => format!("{path}: {}", fault.message),
    };
    let lines: Vec<String> = faults.iter().map(line).collect();
    Err(Failure::Other(format!(
        "nothing was changed:\n{}",
        lines.join("\n")
    )))
}

fn effects(verb: &str, effects: &[Effect]) -> Vec<String> {
    match effects {
        [] => vec![format!("it {verb} nothing to sessions")],
        effects => effects.iter().map(|effect| effect.text.clone()).collect(),
    }
}
