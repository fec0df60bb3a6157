//! What the machine can do at best: the figures others are divided by.

use std::io::{Seek as _, Write as _};
use std::time::Instant;

use capstan::envelope::{SignedStatement, sig_structure};
use capstan::key::{Algorithm, PublicKey};

use crate::statements::{Agent, Kind};

/// ES256 verifications per second on one core, over the messages that a
/// registration verifies, with the key parsed once.
pub(crate) fn es256_verify_rate(scale: usize) -> f64 {
    let agent = Agent::new();
    let statements: Vec<SignedStatement> = agent
        .sign(Kind::Opaque, 0, 200)
        .into_iter()
        .map(|bytes| SignedStatement::parse(bytes).expect("a statement"))
        .collect();
    let pem = agent.trust();
    let pem = pem.split("'''").nth(1).expect("a key");
    let key = PublicKey::from_pem(pem).expect("a key");
    let round = || {
        let started = Instant::now();
        for statement in &statements {
            let message =
                sig_structure(statement.protected(), statement.payload().expect("payload"));
            key.verify(Algorithm::Es256, &message, statement.signature()).expect("valid");
        }
        statements.len() as f64 / started.elapsed().as_secs_f64()
    };
    (0..2 * scale).map(|_| round()).fold(0.0, f64::max)
}

/// The same on all cores at once: less than the sum where cores share what
/// they are made of.
pub(crate) fn es256_verify_rate_together(scale: usize, cores: usize) -> f64 {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..cores).map(|_| scope.spawn(|| es256_verify_rate(scale))).collect();
        all.into_iter().map(|one| one.join().expect("a rate")).sum()
    })
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
