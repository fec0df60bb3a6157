//! What a run will do, with every default filled in and every mistake found
//! before the first request.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use capstan::cli::CliError;
use reqwest::Url;

use super::mix::{Kind, Mix};
use super::signers::KeyKind;

const SECONDS: u64 = 10;
/// Percent of duplicates and of refusals, on a log of ours.
const OFTEN: u32 = 5;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Address of the log
    #[arg(long, required_unless_present = "trust_out")]
    pub(super) url: Option<String>,
    /// Statements per second [default: as fast as possible]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) rate: Option<u64>,
    /// Duration of the load in seconds [default: 10, or until --count]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub(super) seconds: Option<u64>,
    /// Number of statements
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// Concurrent requests
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4095))]
    pub(super) in_flight: u16,
    /// Statements per request; 0 sends each alone to /entries
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "plain", value_parser = clap::value_parser!(u64).range(0..=1024))]
    pub(super) batch: u64,
    /// Kinds of statements and their weights
    #[arg(
        long,
        default_value = "capsules=4,pacr=2,pca=1,trace=2,opaque=1",
        conflicts_with = "plain"
    )]
    pub(super) mix: Mix,
    /// Kinds of keys [default: all; x5chain only with --key-dir]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND")]
    pub(super) keys: Vec<KeyKind>,
    /// Percentage of statements that were sent before [default: 5, with --plain 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=90))]
    pub(super) duplicates: Option<u32>,
    /// Percentage of invalid statements [default: 5, with --plain 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=90))]
    pub(super) refusals: Option<u32>,
    /// Concurrent readers that check receipts, tiles and checkpoints
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=256))]
    pub(super) readers: u64,
    /// Send each statement once, when it is due; do not repeat after 429 or 503
    #[arg(long)]
    pub(super) once: bool,
    /// Sign all statements before the load starts; needs --count
    #[arg(long, requires = "count")]
    pub(super) pre_signed: bool,
    /// Directory that keeps the keys between runs; created if missing
    #[arg(long, value_name = "DIR")]
    pub(super) key_dir: Option<PathBuf>,
    /// Write the trust file that the log needs; without --url, do only that
    #[arg(long, value_name = "FILE", requires = "key_dir")]
    pub(super) trust_out: Option<PathBuf>,
    /// Make new keys, for a log that accepts any (policy/open.toml)
    #[arg(long, conflicts_with = "key_dir")]
    pub(super) dev: bool,
    /// Seed of the random choices, to repeat an earlier run
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Directory for the evidence of a broken promise
    #[arg(long, value_name = "DIR", default_value = "hammer-evidence")]
    pub(super) save: PathBuf,
    /// Seconds to wait for a log that does not answer
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) patience: u64,
    /// Any SCRAPI server: opaque statements, POST and GET /entries, no tiles
    #[arg(long)]
    pub(super) plain: bool,
    /// Bearer token of the log
    #[arg(long, env = "CAPSTAN_TOKEN", hide_env_values = true)]
    pub(super) token: Option<String>,
    /// Allow an address that is not on this machine
    #[arg(long)]
    pub(super) i_own_this_server: bool,
}

/// What is left of the arguments when they make sense.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) rate: Option<u64>,
    pub(super) seconds: Option<u64>,
    pub(super) count: Option<u64>,
    pub(super) in_flight: u16,
    pub(super) batch: u64,
    pub(super) pre_signed: bool,
    pub(super) mix: Mix,
    pub(super) duplicates: u32,
    pub(super) refusals: u32,
    pub(super) seed: u64,
    pub(super) plain: bool,
    pub(super) once: bool,
    pub(super) patience: Duration,
}

impl Args {
    pub(super) fn plan(&self) -> Plan {
        let often = if self.plain { 0 } else { OFTEN };
        let seconds = self.seconds.or(self.count.is_none().then_some(SECONDS));
        Plan {
            rate: self.rate,
            seconds,
            count: self.count,
            in_flight: self.in_flight,
            batch: self.batch,
            pre_signed: self.pre_signed,
            mix: if self.plain { Mix::opaque() } else { self.mix.clone() },
            duplicates: self.duplicates.unwrap_or(often),
            refusals: self.refusals.unwrap_or(often),
            seed: self.seed.unwrap_or_else(nanos),
            plain: self.plain,
            once: self.once,
            patience: Duration::from_secs(self.patience),
        }
    }

    /// What is sent once may be missing when the next one builds on it.
    pub(super) fn stands_alone(&self) -> Result<(), CliError> {
        let chained = [Kind::Pacr, Kind::Trace].into_iter().find(|kind| self.mix.has(*kind));
        match chained.filter(|_| self.once && !self.plain) {
            None => Ok(()),
            Some(kind) => {
                let what =
                    format!("with --once, {} would build on what was sent away", kind.name());
                Err(CliError::failed("usage", what).next("--mix capsules=4,pca=1"))
            }
        }
    }

    /// The kinds of keys. A certificate needs an anchor in the trust file of
    /// the log, so it goes with keys that stay.
    pub(super) fn key_kinds(&self) -> Result<Vec<KeyKind>, CliError> {
        let usage = |what: &str| CliError::failed("usage", what);
        let stays = self.key_dir.is_some();
        if !stays && !self.dev && !self.plain {
            let what = "give --dev for a log that takes any key, or --key-dir";
            return Err(usage(what));
        }
        if !stays && self.keys.contains(&KeyKind::X5chain) {
            return Err(usage("x5chain needs --key-dir, and its --trust-out in the log"));
        }
        let kinds = match (self.keys.as_slice(), stays) {
            ([], true) => vec![KeyKind::Es256, KeyKind::Ed25519, KeyKind::X5chain],
            ([], false) => vec![KeyKind::Es256, KeyKind::Ed25519],
            (chosen, _) => chosen.to_vec(),
        };
        let mut seen = std::collections::HashSet::new();
        Ok(kinds.into_iter().filter(|kind| seen.insert(*kind)).collect())
    }
}

impl Plan {
    /// Requests of one writer, when all that it sends was signed before the
    /// clock starts. Together they are those of the run.
    pub(super) fn requests_of(&self, worker: u16) -> Option<u64> {
        let count = self.count.filter(|_| self.pre_signed)?;
        let (requests, writers) = (count.div_ceil(self.batch.max(1)), u64::from(self.in_flight));
        let one_more = u64::from(worker) < requests % writers;
        Some(requests / writers + u64::from(one_more))
    }
}

/// Makes the names of a run new; the wall clock is enough for that.
pub(super) fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// A hammer in the wrong place is an attack: every address of the host must
/// be on this machine, unless somebody says that the server is theirs.
pub(super) async fn own(url: &Url, owned: bool) -> anyhow::Result<()> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(80);
    let here = match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) if owned => true,
        Err(_) => {
            let mut found = tokio::net::lookup_host((host, port)).await?.peekable();
            found.peek().is_some() && found.all(|address| address.ip().is_loopback())
        }
    };
    if here || owned {
        return Ok(());
    }
    let what = format!("{host} is not this machine");
    Err(CliError::failed("not-loopback", what).next("--i-own-this-server, if you do").into())
}
