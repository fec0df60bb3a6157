//! How fast statements are registered, as ratios measured in one run.
//!
//! `cargo bench --bench registration` takes about five minutes and prints a
//! table; `-- --quick` does the same with tiny sizes in a few seconds, so
//! that the bench itself cannot rot.

// A step of the bench that fails ends the bench.
#![allow(clippy::expect_used, clippy::as_conversions, clippy::indexing_slicing)]

mod ceiling;
mod http;
mod inside;
mod statements;
mod table;

use statements::Kind;
use table::Table;

const OPEN: &str = include_str!("../../policy/open.toml");
const ALL: &str = include_str!("../../policy/all-records.toml");
const AGENTS: &str = include_str!("../../policy/agents.toml");

/// The allocator of the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|a| a == "--quick" || a == "--test");
    let only = |name: &str| {
        let named: Vec<_> = arguments.iter().skip(1).filter(|a| !a.starts_with('-')).collect();
        named.is_empty() || named.iter().any(|a| *a == name)
    };
    if let Some(at) = arguments.iter().position(|a| a == "instructions") {
        let registered = arguments.get(at + 1).and_then(|n| n.parse().ok()).expect("a number");
        return inside::some(600, registered);
    }
    let scale = if quick { 1 } else { 100 };
    let mut table = Table::default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let verify = ceiling::es256_verify_rate(scale);
    let ceiling = verify * cores as f64;
    table.figure("cores", cores as f64, "");
    table.figure("ES256 verify, one core", verify, "/s");
    let together = ceiling::es256_verify_rate_together(scale, cores);
    table.figure("ES256 verify, all cores at once / (cores x verify)", together / ceiling, "");
    if only("inside") {
        let rate = inside::rate(Kind::Opaque, OPEN, 400 * scale);
        table.ratio("in-process pipeline / (cores x verify)", rate, ceiling, ">= 0.60", 0.60);
    }
    if only("records") {
        // With the first quarter, which only warms: 100 000 are timed.
        let records = if quick { 400 } else { 1_334 };
        let opaque = inside::rate(Kind::Opaque, OPEN, records * scale);
        let open = inside::rate(Kind::Capsule, OPEN, 400 * scale);
        let agents = inside::rate(Kind::Capsule, AGENTS, 400 * scale);
        table.ratio("capsules under `agents` / under `open`", agents, open, ">= 0.85", 0.85);
        table.figure("capsules under `agents` / opaque under `open`", agents / opaque, "");
        let causal = inside::rate(Kind::Pacr, ALL, records * scale);
        table.ratio("causal records / opaque statements", causal, opaque, ">= 0.80", 0.80);
        let batches = inside::rate(Kind::Trace, ALL, records * scale);
        table.ratio("TRACE batches / opaque statements", batches, opaque, ">= 0.80", 0.80);
    }
    if only("http") {
        let rate = http::single_rate(200 * scale);
        table.ratio("HTTP, 256 in flight / (cores x verify)", rate, ceiling, ">= 0.25", 0.25);
        let rate = http::batch_rate(400 * scale);
        table.ratio("HTTP batch of 256 / (cores x verify)", rate, ceiling, ">= 0.45", 0.45);
    }
    if only("latency") {
        let fsync = ceiling::fsync_p50_ms(2 * scale);
        let p50 = http::latency_p50_ms(3 * scale);
        table.figure("fdatasync p50 (2 KiB in place)", fsync, "ms");
        table.at_most(
            "p50 latency, one in flight",
            p50,
            3.0 * fsync + 3.0,
            "ms",
            "3 x fdatasync + 3 ms",
        );
    }
    if only("growth") {
        http::growth(&mut table, if quick { 4_000 } else { 1_000_000 });
    }
    print!("{table}");
}
