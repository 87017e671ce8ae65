//! Compares the instructions that `examples/instructions.rs` counted with those that were accepted.
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::env;
use std::fs;

/// What was accepted: a line for each way, its name and its instructions.
const ACCEPTED: &str = "bench/instructions";
/// So many parts of a thousand more are no reason to look.
const SLACK: u64 = 20;

type Counts = BTreeMap<String, u64>;

/// The first argument is the file that gungraun wrote; the second, `accept`, takes what is in it for accepted.
fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().context("which file?")?;
    let text = fs::read_to_string(&file).with_context(|| file.clone())?;
    let counted = counted(&text)?;
    if arguments.next().as_deref() == Some("accept") {
        let lines = counted.iter().map(|(name, n)| format!("{name} {n}\n"));
        return Ok(fs::write(ACCEPTED, lines.collect::<String>())?);
    }
    let accepted = accepted(&fs::read_to_string(ACCEPTED).context(ACCEPTED)?)?;
    let faults = faults(&counted, &accepted);
    for (name, n) in &counted {
        let was = accepted.get(name).map_or("new".into(), u64::to_string);
        println!(
            "{name:<16} {:>7.1} a packet ({n} for 64, {was} accepted)",
            *n as f64 / 64.0
        );
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "the packet path needs other numbers of instructions than were accepted:\n  {}\n\
         if that is what you want: make instructions ACCEPT=1, and commit {ACCEPTED}",
        faults.join("\n  ")
    )
}

/// From gungraun's JSON, an object for each benchmark.
fn counted(text: &str) -> Result<Counts> {
    let mut all = Counts::new();
    let objects = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    for object in objects {
        let object = object?;
        let name = object["id"].as_str().context("a benchmark without an id")?;
        let n = instructions(&object).with_context(|| format!("no instructions of {name}"))?;
        all.insert(name.into(), n);
    }
    if all.is_empty() {
        bail!("nothing was counted");
    }
    Ok(all)
}

fn instructions(object: &serde_json::Value) -> Option<u64> {
    object["profiles"][0]["data"]["total"]["metrics"]["Ir"]["values"]["new"].as_u64()
}

fn accepted(text: &str) -> Result<Counts> {
    let line = |line: &str| -> Result<(String, u64)> {
        let (name, n) = line
            .split_once(' ')
            .with_context(|| format!("{ACCEPTED}: {line:?}"))?;
        Ok((name.into(), n.parse()?))
    };
    text.lines().map(line).collect()
}

/// What is more than was accepted, and what is in one list alone.
fn faults(counted: &Counts, accepted: &Counts) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, &n) in counted {
        match accepted.get(name) {
            None => faults.push(format!("{name}: {n}, and nothing is accepted")),
            Some(&was) if n * 1000 > was * (1000 + SLACK) => {
                let percent = (n as f64 / was as f64 - 1.0) * 100.0;
                faults.push(format!("{name}: {n} instead of {was}, {percent:.1} % more"));
            }
            Some(_) => {}
        }
    }
    let gone = accepted.keys().filter(|name| !counted.contains_key(*name));
    faults.extend(gone.map(|name| format!("{name}: it is not counted any more")));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, u64)]) -> Counts {
        all.iter().map(|(name, n)| (name.to_string(), *n)).collect()
    }

    #[test]
    fn more_than_two_percent_is_a_fault() {
        let was = accepted("a 1000\nb 1000\n").unwrap();
        assert!(faults(&counts(&[("a", 1020), ("b", 500)]), &was).is_empty());
        let found = faults(&counts(&[("a", 1021), ("b", 1000)]), &was);
        assert_eq!(found, ["a: 1021 instead of 1000, 2.1 % more"]);
        assert_eq!(faults(&counts(&[("a", 1), ("c", 1)]), &was).len(), 2);
    }
}
