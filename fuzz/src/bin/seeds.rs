//! Writes every target's seeds into its corpus: `seeds DIRECTORY`.
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let to = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "corpus".into()));
    for target in fuzz::TARGETS {
        let directory = to.join(target.name);
        std::fs::create_dir_all(&directory)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}
