//! What says which key an issuer has: did:web documents, did:x509 names,
//! certificates and COSE keys. A document speaks for its own DID alone, and a
//! key has one name however it was spelt.
#![no_main]

use capstan::key::PublicKey;
use capstan::trust::did_document::parse_did_document;
use capstan::trust::did_x509::DidX509;
use capstan::trust::x509::leaf_key_of;
use libfuzzer_sys::fuzz_target;

const DID: &str = "did:web:example.org";

fuzz_target!(|bytes: &[u8]| {
    for key in parse_did_document(DID, bytes).unwrap_or_default() {
        assert!(key.id.strip_prefix(DID).is_some_and(|rest| rest.starts_with('#')));
        same_again(&key.key);
    }
    let keys = [PublicKey::from_cose_key(bytes), PublicKey::from_spki(bytes)];
    keys.iter().flatten().for_each(same_again);
    let _ = leaf_key_of(bytes).map(|key| same_again(&key));
    let _ = std::str::from_utf8(bytes).map(DidX509::parse);
});

fn same_again(key: &PublicKey) {
    let again = PublicKey::from_cose_key(&key.to_cose_key()).expect("what was written is read");
    assert_eq!((&again, again.id()), (key, key.id()));
}
