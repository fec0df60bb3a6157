//! What the machine can do at best: the figures others are divided by.

use std::io::{Seek as _, Write as _};
use std::time::{Duration, Instant};

use capstan::envelope::{SignedStatement, sig_structure};
use capstan::key::{Algorithm, PublicKey};

use crate::statements::{Agent, Kind};

/// ES256 verification over the messages that a registration verifies, with
/// the key parsed once, and nothing else.
pub(crate) struct Ceiling {
    statements: Vec<SignedStatement>,
    key: PublicKey,
    cores: usize,
    /// How long one look at it takes.
    time: Duration,
}

impl Ceiling {
    pub(crate) fn new(cores: usize, time: Duration) -> Self {
        let agent = Agent::new();
        let parse = |bytes| SignedStatement::parse(bytes).expect("a statement");
        let statements = agent.sign(Kind::Opaque, 0, 200).into_iter().map(parse).collect();
        let pem = agent.trust();
        let pem = pem.split("'''").nth(1).expect("a key");
        Self { statements, key: PublicKey::from_pem(pem).expect("a key"), cores, time }
    }

    /// Verifications per second on this core in the best of many short rounds:
    /// what the machine does when nobody disturbs it.
    pub(crate) fn best_of_one_core(&self, rounds: usize) -> f64 {
        let round = || {
            let started = Instant::now();
            self.verify_all();
            self.statements.len() as f64 / started.elapsed().as_secs_f64()
        };
        (0..rounds).map(|_| round()).fold(0.0, f64::max)
    }

    /// Runs something between two looks at what all cores verify, and gives
    /// their mean with it. A shared machine is never the same twice, but what
    /// slows the one slows the other.
    pub(crate) fn beside<T>(&self, measured: impl FnOnce() -> T) -> (T, f64) {
        let before = self.sustained();
        let result = measured();
        (result, (before + self.sustained()) / 2.0)
    }

    /// Verifications per second on all cores at once, over some time.
    fn sustained(&self) -> f64 {
        let work = || {
            let (started, mut done) = (Instant::now(), 0);
            while started.elapsed() < self.time {
                self.verify_all();
                done += self.statements.len();
            }
            done as f64 / started.elapsed().as_secs_f64()
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..self.cores).map(|_| scope.spawn(work)).collect();
            all.into_iter().map(|one| one.join().expect("a rate")).sum()
        })
    }

    fn verify_all(&self) {
        for statement in &self.statements {
            let payload = statement.payload().expect("a payload");
            let message = sig_structure(statement.protected(), payload);
            self.key.verify(Algorithm::Es256, &message, statement.signature()).expect("valid");
        }
    }
}

/// The median of overwriting 2 KiB inside a file that has its blocks already
/// and syncing the data: what one commit costs the disk at least.
pub(crate) fn fsync_p50_ms(rounds: usize) -> f64 {
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let mut file = std::fs::File::create(dir.path().join("file")).expect("a file");
    file.write_all(&vec![0; 4 << 20]).expect("written");
    file.sync_all().expect("synced");
    file.rewind().expect("rewound");
    let mut times: Vec<f64> = (0..rounds.clamp(10, 2000))
        .map(|_| {
            let started = Instant::now();
            file.write_all(&[7; 2048]).expect("written");
            file.sync_data().expect("synced");
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
