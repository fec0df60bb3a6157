//! Size limits, with the reasoning for each.

/// Largest Signed Statement accepted by default: 60 KiB. A tlog-tiles entry has
/// a 16-bit length (65 535 bytes); 60 KiB leaves 4 KiB for a receipt beside
/// the statement. Larger payloads travel as a hash envelope (RFC 9995).
pub const STATEMENT_BYTES_MAX: usize = 60 * 1024;

/// Nesting of CBOR in headers. The deepest header we know of (CWT claims with
/// a confirmation key inside) is 4 deep.
pub const CBOR_DEPTH_MAX: usize = 16;

/// CBOR items in one header map, at any depth. With 48 bytes for a decoded
/// item this bounds one header at 192 KiB of memory.
pub const CBOR_ITEMS_MAX: usize = 4096;

/// Bytes of one JSON text. A payload is bounded by its statement; evidence
/// behind a digest is not. `[0,0,…` takes 17 bytes of memory per byte of text,
/// up to 48 while the list is reallocated: 4 MiB take at most 200 MiB.
pub const JSON_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Nesting of JSON. The reader recurses, one small frame per level.
pub const JSON_DEPTH_MAX: usize = 64;

/// Characters of an issuer name next to X.509 headers (RFC 9943, 6).
pub const ISSUER_CHARS_MAX: usize = 8192;

/// Certificates in one x5chain. Public chains have 2 to 4.
pub const CHAIN_CERTIFICATES_MAX: usize = 8;

/// Statements in one batch request: 1024 of 60 KiB are 60 MiB, the most one
/// request may hold in memory.
pub const BATCH_STATEMENTS_MAX: usize = 1024;

/// Bytes of one batch request.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Statements a log processes concurrently, by default. At 500 commits per
/// second the last one is answered after 4.1 s, within the default deadline of
/// 5 s; eight clients with batches of 256 are 2048.
pub const WORK_STATEMENTS: usize = 2048;

/// Bytes of requests and responses in memory, by default: four of the largest
/// batches. A body is copied up to four times (raw, split, parsed, canonical):
/// some 256 MiB.
pub const WORK_BYTES: usize = 4 * BATCH_BYTES_MAX;

/// The minimum of that setting. A quarter is reserved for requests of at most
/// one statement, large responses may fill three eighths, and the largest batch
/// must fit into the remaining three eighths: 18 MiB.
pub const WORK_BYTES_MIN: usize = 3 * BATCH_BYTES_MAX;

/// Receipts read from one Transparent Statement.
pub const RECEIPTS_MAX: usize = 64;

/// Nodes in one Merkle path: a tree of 2^63 leaves is 63 levels high, and a
/// consistency path holds at most one node more.
pub const PATH_NODES_MAX: usize = 64;
