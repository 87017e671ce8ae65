//! What may come next on a line outside of `configure`, and how it is listed. Nothing here knows a terminal.

use clap::Command;
use config::completion::Candidate;

/// What is longer than this pushes its meaning to the right.
const WIDEST_WORD: usize = 32;

/// Words with what they mean, one below the other, on lines of at most `width` columns.
pub fn listing(all: &[Candidate], width: usize) -> Vec<String> {
    let longest = all.iter().map(|c| c.word.chars().count()).max();
    let column = longest.unwrap_or(0).min(WIDEST_WORD) + 4;
    let mut lines = Vec::new();
    for candidate in all {
        let mut line = format!("  {:<1$}", candidate.word, column - 2);
        for word in candidate.help.split_whitespace() {
            let begun = line.chars().count() > column;
            if begun && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(core::mem::replace(&mut line, " ".repeat(column)));
            } else if begun {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// What may follow words of a command; `live` gives the names of what there is of a kind, such as `SESSION`.
pub fn of_command(
    command: &Command,
    words: &[String],
    live: &dyn Fn(&str) -> Vec<Candidate>,
) -> Vec<Candidate> {
    let mut command = command;
    let mut positional = 0;
    for word in words {
        match command
            .get_subcommands()
            .find(|sub| sub.get_name() == word && positional == 0)
        {
            Some(sub) => command = sub,
            None if word.starts_with('-') => {}
            None => positional += 1,
        }
    }
    let mut all = Vec::new();
    if positional == 0 {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        all.extend(subs.map(|sub| Candidate::new(sub.get_name(), help(sub.get_about()))));
    }
    if let Some(argument) = command.get_positionals().nth(positional) {
        let name = argument
            .get_value_names()
            .and_then(|n| n.first())
            .map_or("VALUE", |n| n.as_str());
        all.push(Candidate::new(
            format!("<{}>", name.to_lowercase()),
            help(argument.get_help()),
        ));
        all.extend(live(name));
    }
    let flags = command
        .get_arguments()
        .filter(|a| !a.is_positional() && !a.is_global_set() && !a.is_hide_set());
    all.extend(flags.filter_map(|a| {
        Some(Candidate::new(
            format!("--{}", a.get_long()?),
            help(a.get_help()),
        ))
    }));
    all.retain(|candidate| !words.contains(&candidate.word) || !candidate.word.starts_with("--"));
    all
}

fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};
    use config::completion::{Line, fitting};

    #[test]
    fn what_words_mean_is_broken_between_words_and_stays_beside_them() {
        let all = [
            Candidate::new("end", "Ends something that is going on"),
            Candidate::new("longer", ""),
        ];
        let lines = listing(&all, 24);
        let wanted = [
            "  end     Ends something",
            "          that is going",
            "          on",
            "  longer",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(listing(&all, 1).len(), 7, "a word a line at the least");
    }

    #[test]
    fn a_command_offers_its_parts_what_there_is_and_its_flags() {
        let json = || {
            Arg::new("json")
                .long("json")
                .help("Print JSON")
                .action(clap::ArgAction::SetTrue)
        };
        let session = Command::new("session")
            .about("One")
            .arg(Arg::new("id").value_name("SESSION"))
            .arg(json());
        let command = Command::new("x").subcommand(
            Command::new("show")
                .subcommand(session)
                .subcommand(Command::new("ports")),
        );
        let live = |kind: &str| match kind {
            "SESSION" => vec![Candidate::new("1f", "alice")],
            _ => Vec::new(),
        };
        let after = |line: &str| {
            let Line { words, typed, .. } = Line::read(line);
            let found = fitting(of_command(&command, &words, &live), &typed);
            found.into_iter().map(|c| c.word).collect::<Vec<_>>()
        };
        assert_eq!(after("show "), ["ports", "session"]);
        assert_eq!(after("show session "), ["<session>", "--json", "1f"]);
        assert_eq!(after("show session 1f --json "), [""; 0]);
    }
}
