//! Pages of the how-to: their blocks of commands, and what the page says that each block shows.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Stands for what is another each time: within a line for some of it, alone on a line for any number of lines.
const ANYTHING: &str = "…";

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is written in.
    pub language: String,
    /// The commands, one a line.
    pub commands: String,
    /// What the page says that they show: the block in `text` that follows, if one does.
    pub shows: Option<String>,
}

/// The blocks of a page of the how-to.
pub fn of_how_to(name: &str) -> Result<Vec<Block>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/how-to")
        .join(name);
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    Ok(blocks(&text))
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let parts = text.split("```").skip(1).step_by(2);
    for (language, body) in parts.filter_map(|part| part.split_once('\n')) {
        match blocks.last_mut() {
            Some(last) if language == "text" => last.shows = Some(body.to_owned()),
            _ => blocks.push(Block {
                language: language.to_owned(),
                commands: body.to_owned(),
                shows: None,
            }),
        }
    }
    blocks
}

/// Holds what was shown against what a page says. Widths of columns and empty lines do not matter.
pub fn compare(shown: &str, page: &str) -> Result<()> {
    let mut lines = lines(shown);
    let mut some = false;
    for expected in self::lines(page) {
        if expected == ANYTHING {
            some = true;
            continue;
        }
        let found = lines.iter().position(|line| matches(line, &expected));
        let found = found.filter(|place| some || *place == 0);
        let place = found.with_context(|| {
            let next = lines.first().map_or("nothing more", String::as_str);
            format!("the page says `{expected}`, where `{next}` is shown, in\n{shown}")
        })?;
        lines.drain(..=place);
        some = false;
    }
    ensure!(
        some || lines.is_empty(),
        "the page does not say `{}`, which is shown in\n{shown}",
        lines[0]
    );
    Ok(())
}

fn lines(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Whether a line is as expected; each [`ANYTHING`] stands for at least one character.
fn matches(line: &str, expected: &str) -> bool {
    let Some((begin, rest)) = expected.split_once(ANYTHING) else {
        return line == expected;
    };
    let Some(after) = line.strip_prefix(begin) else {
        return false;
    };
    let mut places = after
        .char_indices()
        .map(|(place, _)| place)
        .skip(1)
        .chain([after.len()]);
    !after.is_empty() && places.any(|place| matches(&after[place..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_what_they_show() {
        let found = blocks("a\n```sluice\nshow x\n```\nb\n```text\nX\n```\n```sh\nls\n```\n");
        let [first, second] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((&*first.language, &*first.commands), ("sluice", "show x\n"));
        assert_eq!(first.shows.as_deref(), Some("X\n"));
        assert_eq!((&*second.language, &second.shows), ("sh", &None));
    }

    #[test]
    fn what_is_shown_is_compared_but_for_what_changes() {
        let shown = "NAME    STATE\nup1     associated for 7 s\nup2     lost\n\nthe end\n";
        for page in [
            "NAME STATE\nup1 associated for … s\nup2 lost\nthe end",
            "NAME …\n…\nthe end\n",
            "…\nup2 …\n…",
        ] {
            assert!(compare(shown, page).is_ok(), "{page}");
        }
        for page in [
            "NAME STATE\nup1 associated for … s\nthe end",
            "NAME STATE\n…\nup2 associated\n…",
            "NAME STATE\nup1 associated for … s\nup2 lost…\nthe end",
            "NAME STATE\nup1 associated for … s\nup2 lost\n",
            "",
        ] {
            assert!(compare(shown, page).is_err(), "{page}");
        }
    }
}
