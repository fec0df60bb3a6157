//! A statement that parses has one canonical form, which is a statement with
//! the same id.
#![no_main]

use capstan::envelope::{SignedStatement, StatementId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(statement) = SignedStatement::parse(bytes.to_vec()) else { return };
    assert_eq!(statement.bytes(), bytes);
    let _ = statement.header().conformance();
    let _ = statement.algorithm();
    // A chain lent by the unprotected map is not part of S, so S alone may
    // fail where the whole did not; its id never differs.
    let canonical = statement.canonical();
    if let Ok(again) = SignedStatement::parse_any_size(canonical.to_vec()) {
        assert_eq!(again.canonical(), canonical);
        assert_eq!(StatementId::of(&again), StatementId::of(&statement));
    }
});
