//! Ed25519 keys that nobody should have.
//!
//! In: 32 bytes. Out: whether they are a key in its one spelling, under which
//! a signature says something. The library checks neither.

/// The y coordinates of the points of order 1, 2, 4 and 8, little-endian. For
/// such a key there are signatures that hold for many messages, made without
/// any secret.
const SMALL_ORDER: [[u8; 32]; 5] = [
    [0; 32],
    with_ends(1, 0, 0),
    with_ends(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// A number whose bytes in between are all the same.
const fn with_ends(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    let [low, .., high] = &mut bytes;
    *low = first;
    *high = last;
    bytes
}

/// Whether a key is spelt as RFC 8032, 5.1.3 has it (y below 2^255 - 19) and
/// is not of small order.
pub(super) fn is_sound(key: &[u8; 32]) -> bool {
    let mut y = *key;
    let [first, between @ .., last] = &mut y;
    *last &= 0x7f;
    let is_canonical = *last != 0x7f || *first < 0xed || between.iter().any(|byte| *byte != 0xff);
    is_canonical && !SMALL_ORDER.contains(&y)
}
