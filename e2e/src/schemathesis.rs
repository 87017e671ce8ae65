//! schemathesis asks `sluice-web` whatever its description allows and does not allow, and holds each answer against the description.
//! `e2e/schemathesis` says how, and has two checks of our own: of roles, and of members that are not described.

use crate::access_network::AccessNetwork;
use crate::cases::web::{self, AT, Web};
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Homes that are online.
const HOMES: u16 = 3;
/// How long a round may take, which only ends a hang.
const LIMIT: Duration = Duration::from_secs(540);

/// A run of schemathesis.
struct Round {
    name: &'static str,
    /// Role of the token.
    role: &'static str,
    words: &'static [&'static str],
}

/// What is left out of most rounds: streams, which do not end, and for whose events OpenAPI 3.1 has no schema; commits and sign-ins,
/// which have rounds of their own.
const LEFT_OUT: &str = "/(top|events/stream|trace|trace/file|configuration/commit|sign-in)$";

/// Right requests to all others.
const RIGHT: [&str; 4] = [
    "--exclude-path-regex",
    LEFT_OUT,
    "--phases=coverage",
    "--mode=positive",
];

/// The rounds, in their order.
const ROUNDS: [Round; 6] = [
    // Right and wrong requests.
    Round {
        name: "all",
        role: "configure",
        words: &[
            "--exclude-path-regex",
            LEFT_OUT,
            "--phases=coverage,fuzzing",
            "--max-time=300",
        ],
    },
    // Right requests of others: what their role lets them, and nothing else. Streams are beyond this role.
    Round {
        name: "view",
        role: "view",
        words: &[
            "--exclude-path=/api/v1/sign-in",
            "--phases=coverage",
            "--mode=positive",
        ],
    },
    Round {
        name: "support",
        role: "support",
        words: &RIGHT,
    },
    Round {
        name: "operate",
        role: "operate",
        words: &RIGHT,
    },
    // A document that is right and empty, for one, ends what others are asked about.
    Round {
        name: "commit",
        role: "configure",
        words: &[
            "--include-path=/api/v1/configuration/commit",
            "--phases=coverage,fuzzing",
        ],
    },
    // Ten wrong passwords lock the address out, and wrong tokens with them: from then on most answers are 429.
    Round {
        name: "sign-in",
        role: "configure",
        words: &[
            "--include-path=/api/v1/sign-in",
            "--phases=coverage,fuzzing",
            "--warnings=off",
        ],
    },
];

/// Every answer of a gateway with a few homes is as described.
pub fn run(fixture: &mut Fixture, seed: u64) -> Result<()> {
    guard::limit("schemathesis");
    let (lab, _) = fixture.site(&Setup::default())?;
    let mut web = Web::start(lab, "{}")?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    for round in ROUNDS {
        guard::limit("a round of schemathesis");
        let name = round.name;
        round
            .run(lab, seed)
            .with_context(|| format!("schemathesis: {name}"))?;
        ensure!(web.process.ended()?.is_none(), "sluice-web has ended");
    }
    web.process.stop()
}

impl Round {
    fn run(&self, lab: &Lab, seed: u64) -> Result<()> {
        let token = web::token(lab, self.name, self.role)?;
        let netns = lab.netns(Place::ControlPlane);
        let mut command = netns.command(file("../target/schemathesis/bin/schemathesis"));
        command
            .arg("--config-file")
            .arg(file("schemathesis/schemathesis.toml"))
            .args(["run", "--no-color", "--seed", &seed.to_string()])
            .arg("--tls-verify")
            .arg(lab.dir().join("web/certificate.pem"))
            .args(self.words)
            .arg(format!("https://{AT}/api/v1/openapi.json"))
            .env("SLUICE_TOKEN", token)
            .env("SLUICE_ROLE", self.role)
            .env("SLUICE_CHECKS", file("schemathesis/checks.py"))
            // it keeps files where it is started
            .current_dir(lab.dir());
        let log = format!("schemathesis-{}", self.name);
        let mut process = Process::spawn(lab.dir(), &log, command)?;
        let status = process.wait_end(LIMIT)?;
        let said = fs::read_to_string(process.log())?;
        let failures = said.find("= FAILURES =").unwrap_or_default();
        ensure!(status.success(), "{}", &said[failures..]);
        let is_count = |line: &&str| {
            line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" generated")
        };
        let count = said.lines().map(str::trim).find(is_count);
        println!("        {}: {}", self.name, count.context("no test cases")?);
        Ok(())
    }
}

/// A file beside this program's source.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
