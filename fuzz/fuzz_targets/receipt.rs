//! Receipts parse or fail, and no proof leads to a key nobody trusts.
#![no_main]

use capstan::receipt::Receipt;
use capstan::verify::{Memo, consistency, inclusion};
use capstan::wire::digest::Digest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(receipt) = Receipt::parse(bytes.to_vec()) else { return };
    assert!(inclusion(&receipt, b"statement", &[], &mut Memo::default()).is_err());
    assert!(consistency(&receipt, &Digest::of(b""), &[], &mut Memo::default()).is_err());
});
