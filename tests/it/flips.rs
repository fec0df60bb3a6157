//! Flipped bits in the files of a log.
//!
//! On disk not every bit says something: there is room behind the end of a
//! journal. What a flip must never do is change what the log holds without
//! being found. `LONG_TESTS=1` flips many more, `SEED=N` others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use capstan::key::{Algorithm, SigningKey};
use capstan::service;

use crate::crash::copy_tree;
use crate::live::{Server, request, sealed};

fn log(data: &Path) {
    let policy = include_str!("../../policy/open.toml");
    service::init(data, "flips.invalid", policy, Algorithm::Es256).unwrap();
    let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let server = Server::start(data);
    for n in 0..300 {
        let statement = sealed(&key, &format!("statement {n}"));
        assert_eq!(request(&server.address, "POST /entries", &statement).unwrap().0, 201);
    }
    assert!(server.terminate().success());
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if std::fs::metadata(&path).unwrap().len() > 0 {
            into.push(path);
        }
    }
}

/// Exit code, what was answered, and everything that was said.
fn fsck(data: &Path) -> (Option<i32>, serde_json::Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_capstan"));
    command.args(["fsck", "--json", "--data"]).arg(data).env_remove("CAPSTAN_VECTORS");
    let output = command.env("RUST_BACKTRACE", "0").output().unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let said = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
    (output.status.code(), answer, said.concat())
}

#[test]
fn flipped_bit_on_disk_is_found_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let (good, data) = (dir.path().join("good"), dir.path().join("data"));
    log(&good);
    std::fs::copy(dir.path().join("good.guard"), dir.path().join("data.guard")).unwrap();
    let (exit, sound, said) = fsck(&good);
    assert_eq!(exit, Some(0), "{said}");
    let flips = if std::env::var_os("LONG_TESTS").is_some() { 1000 } else { 60 };
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut seed, mut found, mut silent) = (seed.unwrap_or(1_u64), 0, 0);
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    for nth in 0..flips {
        copy_tree(&good, &data);
        let mut all = Vec::new();
        files(&data.join("store"), &mut all);
        all.sort();
        let mut roll = |sides: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % sides
        };
        let path = &all[roll(all.len())];
        let mut bytes = std::fs::read(path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        let place = roll(used * 8);
        bytes[place / 8] ^= 1 << (place % 8);
        std::fs::write(path, bytes).unwrap();
        let (exit, after, said) = fsck(&data);
        if exit == Some(0) {
            silent += 1;
            assert_eq!(
                after["root"],
                sound["root"],
                "flip {nth}, bit {place} of {}",
                path.display()
            );
        } else {
            found += 1;
            let code = after["code"].as_str().unwrap_or_default();
            *codes.entry(code.to_owned()).or_insert(0) += 1;
            // Not even the engine's own panics are without an answer.
            let told = matches!(exit, Some(1 | 2)) && !code.is_empty() && code != "ok";
            assert!(told, "flip {nth}, bit {place} of {}: {exit:?} {said}", path.display());
        }
        std::fs::remove_dir_all(&data).unwrap();
    }
    println!("{flips} flips: {found} found {codes:?}, {silent} changed nothing");
    assert!(found > flips / 4);
}
