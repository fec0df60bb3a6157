//! How fast statements are registered, as ratios measured in one run.
//!
//! `cargo bench --bench registration` takes about five minutes and prints a
//! table; `-- --quick` does the same with tiny sizes in a few seconds, so
//! that the bench itself cannot rot.

// A step of the bench that fails ends the bench.
#![allow(clippy::expect_used, clippy::as_conversions, clippy::indexing_slicing)]
// A bench prints numbers, none of them from outside.
#![allow(clippy::disallowed_macros)]

mod ceiling;
mod cores;
mod http;
mod inside;
mod statements;
mod table;

use std::time::Duration;

use ceiling::Ceiling;
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
    table.figure("cores", cores as f64, "");
    let ceiling = Ceiling::new(cores, Duration::from_millis(if quick { 20 } else { 2_000 }));
    let verify = ceiling.best_of_one_core(2 * scale);
    table.figure("ES256 verify, one core, best round", verify, "/s");
    if only("inside") {
        let measured = ceiling.beside(|| inside::rate(Kind::Opaque, OPEN, 1_200 * scale));
        table.under_ceiling("in-process pipeline", measured, 0.75);
    }
    if only("records") {
        // With the first quarter, which only warms: 100 000 are timed.
        let records = if quick { 400 } else { 1_334 };
        let opaque = inside::rate(Kind::Opaque, OPEN, records * scale).per_second;
        let open = inside::rate(Kind::Capsule, OPEN, 400 * scale).per_second;
        let agents = inside::rate(Kind::Capsule, AGENTS, 400 * scale);
        table.share("capsules under `agents` / under `open`", agents, open, 0.85);
        let share = agents.per_second / opaque;
        table.figure("capsules under `agents` / opaque under `open`", share, "");
        let causal = inside::rate(Kind::Pacr, ALL, records * scale);
        table.share("causal records / opaque statements", causal, opaque, 0.80);
        let batches = inside::rate(Kind::Trace, ALL, records * scale);
        table.share("TRACE batches / opaque statements", batches, opaque, 0.80);
    }
    if only("http") {
        let measured = ceiling.beside(|| http::single_rate(400 * scale));
        table.under_ceiling("HTTP, 256 in flight", measured, 0.35);
        let measured = ceiling.beside(|| http::batch_rate(800 * scale));
        table.under_ceiling("HTTP batches of 256", measured, 0.60);
    }
    if only("latency") {
        let fsync = ceiling::fsync_p50_ms(2 * scale);
        let p50 = http::load(1, 20 * scale).p50_ms;
        table.figure("fdatasync p50 (2 KiB in place)", fsync, "ms");
        table.at_most(
            "p50 latency, one in flight",
            p50,
            3.0 * fsync + 3.0,
            "ms",
            "3 x fdatasync + 3 ms",
        );
        http::half_load(&mut table, if quick { 1 } else { 10 });
    }
    if only("in-flight") {
        let alone = http::load(1, 20 * scale);
        table.figure("one in flight", alone.per_second, "/s");
        table.figure("p50, one in flight", alone.p50_ms, "ms");
        for (in_flight, count) in [(8, 100), (64, 200), (256, 400)] {
            let load = http::load(in_flight, count * scale);
            table.figure(&format!("{in_flight} in flight"), load.per_second, "/s");
            let what = format!("p50, {in_flight} in flight");
            match in_flight {
                8 => table.at_most(&what, load.p50_ms, 2.0 * alone.p50_ms, "ms", "2 x one"),
                _ => table.figure(&what, load.p50_ms, "ms"),
            }
        }
    }
    if only("growth") {
        http::growth(&mut table, if quick { 4_000 } else { 1_000_000 });
    }
    print!("{table}");
}
