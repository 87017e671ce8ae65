//! `sluice trace`: what a subscriber and the gateway say to each other, as it happens.

mod ladder;

use crate::cli::units::counted;
use crate::cli::{Answer, Failure, Sockets, terminal_width};
use crate::screen::Interrupt;
use ladder::{HEADING, Ladder};
use northbound::{TRACE_SAMPLES, TRACE_SECONDS, TraceRequest, TraceResponse};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;
use trace::{Line, Writer};

/// How long Ctrl-C may wait.
const LOOK: Duration = Duration::from_millis(100);

/// Who is followed, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Trace {
    /// A session's id or address, the name of a user who has a session, or a home's MAC address, which need not be online
    #[arg(value_name = "WHO")]
    who: String,
    /// End after so many seconds
    #[arg(long, default_value_t = TRACE_SECONDS, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Show at most so many forwarded packets of a session in a second; 0: none
    #[arg(long, value_name = "PER_SECOND", default_value_t = TRACE_SAMPLES, value_parser = clap::value_parser!(u32).range(0..=1000))]
    samples: u32,
    /// Show only one in so many forwarded packets
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    one_in: u32,
    /// Write what is seen to a file, too, in pcapng
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON, one line for each message
    #[arg(long)]
    json: bool,
}

impl Trace {
    /// Follows until somebody has seen enough, or the time is over.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let mut file = self.write.as_ref().map(create).transpose()?;
        let interrupt = Interrupt::listen()?;
        let mut tracing = sockets.trace(TraceRequest {
            subject: self.who.clone(),
            seconds: self.seconds,
            sample_one_in: self.one_in,
            samples_per_second: self.samples,
        })?;
        let (mut ladder, mut seen, mut missed) = (Ladder::default(), 0, 0);
        let mut ended = String::new();
        while ended.is_empty() && !interrupt.is_asked() {
            let Some(part) = tracing.next(LOOK)? else {
                continue;
            };
            let shown = self.show(&part, &mut ladder);
            match shown {
                // `sluice trace ... | head` is no error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                done => done?,
            }
            if let Some(file) = &mut file {
                let packets = &mut part.packets.iter();
                packets.try_for_each(|packet| file.packet(packet))?;
                file.flush()?;
            }
            seen += part.packets.len();
            missed = missed.max(part.missed);
            ended = part.ended;
        }
        if self.json {
            return Ok(Answer::default());
        }
        let why = match ended.as_str() {
            "" => String::new(),
            why => format!("; {why}"),
        };
        let end = format!("{}, {missed} missed{why}", counted(seen, "message"));
        Ok(Answer::of(vec![end]))
    }

    fn show(&self, part: &TraceResponse, ladder: &mut Ladder) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !part.followed.is_empty() && !self.json {
            let (home, seconds) = (&part.followed, self.seconds);
            writeln!(out, "following {home} for {seconds} s; Ctrl-C ends it")?;
            writeln!(out, "{HEADING}")?;
        }
        let width = terminal_width().unwrap_or(usize::MAX);
        for packet in &part.packets {
            let line = match self.json {
                true => serde_json::to_string(&Line::of(packet))?,
                false => ladder.line(packet).chars().take(width).collect(),
            };
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

/// What subscribers say is for nobody else to read.
fn create(path: &PathBuf) -> Result<Writer<BufWriter<File>>, Failure> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(path).and_then(|file| {
        // the file may have been there, for more to read than it is to be now
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(BufWriter::new(file))
    });
    let writer = file.and_then(Writer::begin);
    writer.map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_may_read_a_file_that_was_there_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.pcapng");
        std::fs::write(&path, "something long that was there before, for everybody").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(create(&path).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
