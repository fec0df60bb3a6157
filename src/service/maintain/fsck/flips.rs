//! One flipped bit in any row: it is found, and the finding names the part.
//!
//! `LONG_TESTS=1` flips many more.

use super::tests::fill;
use super::*;
use crate::store::fixture::TestLog;

/// A small generator, so that a failure can be repeated from its seed.
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

/// The findings of `fsck`, or the reason it cannot begin.
fn findings(log: &TestLog) -> Vec<String> {
    match fsck_on(log.open().unwrap(), &log.guard(), &mut |_, _| ()) {
        Ok(checked) => {
            checked.findings.into_iter().map(|f| format!("{} {}", f.code, f.detail)).collect()
        }
        Err(ControlError::Store(e)) => vec![format!("{} {}", e.code(), chain(&e))],
        Err(e) => vec![chain(&e)],
    }
}

/// Texts, one of which names the space that was hit.
fn names_of(space: Space) -> &'static [&'static str] {
    match space {
        Space::Statements => &["statement", "#", "id-", "signature", "leaf", "index-differs"],
        Space::Ids => &["id-", "ids are stored", "store-id-damaged"],
        Space::Tiles => &["tile"],
        Space::Index => &["index-differs"],
        Space::Meta => &["head", "key", "control", "store-forked", "root"],
    }
}

#[test]
fn flipped_bit_in_any_row_is_found() {
    TestLog::on_each_engine().iter().for_each(flip_bits);
}

fn flip_bits(log: &TestLog) {
    fill(log);
    assert_eq!(findings(log), [""; 0]);
    let each = if long() { 150 } else { 24 };
    let mut dice = Dice(1);
    for space in Space::ALL {
        let rows = log.rows(space);
        assert!(!rows.is_empty(), "{space:?}");
        for nth in 0..each {
            let (key, value) = &rows[dice.roll(rows.len())];
            // Half of the flips hit the key, which says where a value belongs,
            // and all of them where the value is empty.
            let hits_key = nth % 2 == 1 || value.is_empty();
            let (mut new_key, mut new_value) = (key.clone(), value.clone());
            let bytes = if hits_key { &mut new_key } else { &mut new_value };
            let bit = dice.roll(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            log.tamper(space, key, None);
            log.tamper(space, &new_key, Some(&new_value));
            let (found, names) = (findings(log), names_of(space));
            let is_named = found.iter().any(|line| names.iter().any(|name| line.contains(name)));
            let engine = log.engine();
            assert!(is_named, "{engine} {space:?} {key:?} key={hits_key} bit {bit}: {found:?}");
            log.tamper(space, &new_key, None);
            // A flipped key can be that of another row, which goes back too.
            for (key, value) in rows.iter().filter(|row| row.0 == *key || row.0 == new_key) {
                log.tamper(space, key, Some(value));
            }
        }
    }
    assert_eq!(findings(log), [""; 0], "every flip was put back");
}
