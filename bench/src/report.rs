//! What was measured: entries, their statistics, the table and the file.
use serde::Serialize;

/// One figure, beside its peer's where it has one.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub id: String,
    pub name: String,
    pub unit: &'static str,
    pub min: f64,
    pub median: f64,
    /// Between the first and the third quartile.
    pub spread: f64,
    pub peer: Option<String>,
    pub peer_median: Option<f64>,
    /// What `target` is about where there is a peer: see the entry's name.
    pub ratio: Option<f64>,
    pub target: Option<f64>,
    pub met: Option<bool>,
    /// Beside what others have published: `match`, `beat` or `missed`.
    pub verdict: Option<&'static str>,
    pub features: Vec<&'static str>,
    /// Octets of the frame on the access side or core side where it comes in.
    pub frame: Option<String>,
    pub sessions: Option<u32>,
    pub routes: Option<usize>,
    pub headers: Option<&'static str>,
}

/// Samples of one figure.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n => sorted[((n - 1) as f64 * q).round() as usize],
        }
    }

    pub fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub fn spread(&self) -> f64 {
        self.quantile(0.75) - self.quantile(0.25)
    }
}

impl Entry {
    pub fn new(id: &str, name: impl Into<String>, unit: &'static str, samples: &Samples) -> Self {
        let round = |x: f64| (x * 100.0).round() / 100.0;
        Entry {
            id: id.into(),
            name: name.into(),
            unit,
            min: round(samples.min()),
            median: round(samples.median()),
            spread: round(samples.spread()),
            peer: None,
            peer_median: None,
            ratio: None,
            target: None,
            met: None,
            verdict: None,
            features: Vec::new(),
            frame: None,
            sessions: None,
            routes: None,
            headers: None,
        }
    }

    /// The figure itself is to be at most this.
    pub fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self.met = Some(self.median <= target);
        self
    }

    /// The figure itself is to be at least this.
    pub fn at_least(mut self, target: f64) -> Self {
        self.target = Some(target);
        self.met = Some(self.median >= target);
        self
    }

    /// The figure itself is to be at most the cycles that a published system has for a packet; with half of them it is beaten.
    pub fn within(mut self, budget: f64) -> Self {
        self.verdict = Some(match self.median {
            own if own <= budget / 2.0 => "beat",
            own if own <= budget => "match",
            _ => "missed",
        });
        self.at_most(budget)
    }

    /// What is to be said of the target.
    fn word(&self) -> &'static str {
        let met = self.met.map(|met| if met { "met" } else { "missed" });
        self.verdict.or(met).unwrap_or_default()
    }

    /// The median over the peer's is to be at most this.
    pub fn ratio_at_most(mut self, peer: &str, samples: &Samples, target: f64) -> Self {
        self = self.beside(peer, samples, |own, peer| own / peer);
        self.target = Some(target);
        self.met = self.ratio.map(|ratio| ratio <= target);
        self
    }

    /// The peer's median over this one is to be at least this: so many times faster.
    pub fn faster_at_least(mut self, peer: &str, samples: &Samples, target: f64) -> Self {
        self = self.beside(peer, samples, |own, peer| peer / own);
        self.target = Some(target);
        self.met = self.ratio.map(|ratio| ratio >= target);
        self
    }

    /// With a peer, and what the figure is beside it.
    pub fn beside(mut self, peer: &str, samples: &Samples, ratio: fn(f64, f64) -> f64) -> Self {
        self.peer = Some(peer.into());
        self.peer_median = Some((samples.median() * 100.0).round() / 100.0);
        self.ratio = Some((ratio(self.median, samples.median()) * 1000.0).round() / 1000.0);
        self
    }
}

/// Everything, with what has to be known of the machine to read it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub cpu: String,
    /// `None`: nothing was measured in cycles.
    pub tsc_mhz: Option<u64>,
    pub load: String,
    /// The packet path.
    pub entries: Vec<Entry>,
    /// RADIUS.
    pub radius: Vec<Entry>,
}

/// With two digits, or nothing.
fn number(x: Option<f64>) -> String {
    x.map_or(String::new(), |x| format!("{x:.2}"))
}

/// Before a table in a document: of the packet path, and of RADIUS.
const PACKETS: &str = "<!-- table: written by make bench DOCS=1 -->\n";
const RADIUS: &str = "<!-- RADIUS: written by make bench DOCS=1 -->\n";
/// After it.
const END: &str = "<!-- end of table -->";

impl Report {
    /// The document with the tables of what was measured in place of those that it has.
    pub fn in_document(&self, document: &str) -> Option<String> {
        let mut text = document.to_owned();
        for (begin, entries) in [(PACKETS, &self.entries), (RADIUS, &self.radius)] {
            if !entries.is_empty() {
                let (before, rest) = text.split_once(begin)?;
                let (_, after) = rest.split_once(END)?;
                let table = self.markdown(entries);
                text = format!("{before}{begin}{table}{END}{after}");
            }
        }
        Some(text)
    }

    /// The rate of the clock that cycles are counted by, to follow the CPU's name.
    pub fn clock(&self) -> String {
        let clock = |mhz| format!(", time stamp counter at {mhz} MHz");
        self.tsc_mhz.map_or(String::new(), clock)
    }

    fn markdown(&self, entries: &[Entry]) -> String {
        let mut text = format!(
            "{}{}, load {} at the start.\n\n\
             | id | | unit | minimum | median | spread | peer | ratio | target | |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            self.cpu,
            self.clock(),
            self.load
        );
        for e in entries {
            let met = match e.met {
                Some(false) => format!("**{}**", e.word()),
                _ => e.word().into(),
            };
            text += &format!(
                "| {} | {} | {} | {:.1} | {:.1} | {:.1} | {} | {} | {} | {met} |\n",
                e.id,
                e.name,
                e.unit,
                e.min,
                e.median,
                e.spread,
                number(e.peer_median),
                number(e.ratio),
                number(e.target),
            );
        }
        text
    }

    /// The table: figures with a target first, in full; then what else was measured.
    pub fn print(&self) {
        println!("{}{}, load {}", self.cpu, self.clock(), self.load);
        let all = self.entries.iter().chain(&self.radius);
        let (aimed, others): (Vec<_>, Vec<_>) = all.partition(|e| e.met.is_some());
        println!(
            "\n{:<18}{:>8}{:>8}{:>8}{:>9}{:>8}{:>8}",
            "target", "min", "median", "spread", "peer", "ratio", "target"
        );
        for e in aimed {
            let headers = e.headers.map_or(String::new(), |h| format!(" ({h})"));
            println!(
                "{:<18}{:>8.1}{:>8.1}{:>8.1}{:>9}{:>8}{:>8}  {:<8}{}",
                format!(
                    "{}{}",
                    e.id,
                    if e.id.ends_with("cycles") {
                        &headers
                    } else {
                        ""
                    }
                ),
                e.min,
                e.median,
                e.spread,
                number(e.peer_median),
                number(e.ratio),
                number(e.target),
                match e.met {
                    Some(false) => e.word().to_uppercase(),
                    _ => e.word().into(),
                },
                e.name,
            );
        }
        println!(
            "\n{:<66}{:>8}{:>8}{:>8}",
            "measured", "min", "median", "spread"
        );
        for e in others {
            println!(
                "{:<66}{:>8.1}{:>8.1}{:>8.1}",
                e.name, e.min, e.median, e.spread
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_document_is_replaced() {
        let report = Report {
            cpu: "c".into(),
            tsc_mhz: Some(1),
            load: "0".into(),
            entries: vec![Entry::new("x", "the x", "cycles", &Samples(vec![2.0]))],
            radius: Vec::new(),
        };
        let other = format!("{RADIUS}kept\n{END}\nafter");
        let once = report
            .in_document(&format!("before\n{PACKETS}old\n{END}\n{other}"))
            .unwrap();
        assert!(once.starts_with("before\n") && once.ends_with(&other) && !once.contains("old"));
        assert!(
            once.contains("| x | the x | cycles | 2.0 | 2.0 | 0.0 |"),
            "{once}"
        );
        assert_eq!(report.in_document(&once), Some(once.clone()));
        assert_eq!(report.in_document("no table"), None);
    }

    #[test]
    fn targets_are_met_or_missed_by_the_median() {
        let own = Samples(vec![60.0, 50.0, 70.0, 1000.0, 40.0]);
        let peer = Samples(vec![20.0, 10.0, 30.0]);
        let entry = Entry::new("x", "x", "cycles", &own);
        assert_eq!((entry.min, entry.median, entry.spread), (40.0, 60.0, 20.0));
        assert_eq!(entry.clone().at_most(60.0).met, Some(true));
        assert_eq!(entry.clone().at_most(59.0).met, Some(false));
        assert_eq!(entry.clone().within(120.0).verdict, Some("beat"));
        assert_eq!(entry.clone().within(119.0).verdict, Some("match"));
        assert_eq!(entry.clone().within(59.0).verdict, Some("missed"));
        assert_eq!(entry.clone().at_least(60.0).met, Some(true));
        assert_eq!(entry.clone().at_least(61.0).met, Some(false));
        let ratio = |t| entry.clone().ratio_at_most("p", &peer, t);
        assert_eq!(
            (ratio(3.0).ratio, ratio(3.0).met, ratio(2.9).met),
            (Some(3.0), Some(true), Some(false))
        );
        let faster = |t| entry.clone().faster_at_least("p", &peer, t);
        assert_eq!(
            (faster(0.33).ratio, faster(0.33).met, faster(0.34).met),
            (Some(0.333), Some(true), Some(false))
        );
    }
}
