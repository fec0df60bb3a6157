//! One flipped bit, anywhere in what is stored: it is found, and named.
//!
//! `LONG_TESTS=1` flips many more.

use std::path::Path;

use super::tests::{Rows, log};
use super::*;

/// A small generator, so that a failure can be had again from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

fn long() -> bool {
    std::env::var_os("LONG_TESTS").is_some()
}

/// What `fsck` says, as words: findings, or the reason it cannot begin.
fn said(data: &Path) -> Vec<String> {
    match fsck(data, None, &mut |_, _| ()) {
        Ok(checked) => {
            checked.findings.into_iter().map(|f| format!("{} {}", f.code, f.detail)).collect()
        }
        Err(ControlError::Store(e)) => vec![format!("{} {}", e.code(), chain(&e))],
        Err(e) => vec![chain(&e)],
    }
}

/// Words one of which tells the part that was hit.
fn names_the_part(keyspace: &str) -> &'static [&'static str] {
    match keyspace {
        "statements" => &["statement", "#", "id-", "signature", "leaf", "index-differs"],
        "ids" => &["id-", "ids are stored", "store-id-damaged"],
        "tiles" => &["tile"],
        "index" => &["index-differs"],
        _ => &["head", "key", "control", "store-forked", "root"],
    }
}

#[test]
fn a_flipped_bit_in_any_stored_value_is_found() {
    let root = tempfile::tempdir().unwrap();
    let data = log(root.path());
    assert_eq!(said(&data), [""; 0]);
    let each = if long() { 150 } else { 24 };
    let mut dice = Dice(1);
    for keyspace in ["statements", "ids", "tiles", "index", "meta"] {
        let rows = Rows::of(&data).all(keyspace);
        assert!(!rows.is_empty(), "{keyspace}");
        for nth in 0..each {
            let (key, value) = &rows[dice.roll(rows.len())];
            // Half of the flips hit the key, which says where a value belongs,
            // and all of them where the key is all there is.
            let hits_key = nth % 2 == 1 || value.is_empty();
            let (mut new_key, mut new_value) = (key.clone(), value.clone());
            let bytes = if hits_key { &mut new_key } else { &mut new_value };
            let place = dice.roll(bytes.len() * 8);
            bytes[place / 8] ^= 1 << (place % 8);
            let store = Rows::of(&data);
            store.remove(keyspace, key);
            store.put(keyspace, &new_key, &new_value);
            drop(store);
            let found = said(&data);
            let words = names_the_part(keyspace);
            let named = found.iter().any(|line| words.iter().any(|word| line.contains(word)));
            assert!(named, "{keyspace} {key:?} key={hits_key} bit {place}: {found:?}");
            let store = Rows::of(&data);
            store.remove(keyspace, &new_key);
            // A flipped key can be that of another row, which goes back too.
            for (key, value) in rows.iter().filter(|row| row.0 == *key || row.0 == new_key) {
                store.put(keyspace, key, value);
            }
        }
    }
    assert_eq!(said(&data), [""; 0], "every flip was put back");
}
