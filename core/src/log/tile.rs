//! Tiles of C2SP tlog-tiles: 256 hashes wide, 8 levels high.
//!
//! In: tree sizes, hashes, entries, resource paths. Out: tile ids, and the
//! bytes of hash tiles and entry bundles. Each tile has one path.

use std::fmt;

use super::{Error, TreeSize};
use crate::wire::digest::Digest;

/// Hashes in a full tile.
pub const TILE_WIDTH: u16 = 256;

/// Tile levels of the largest tree: 64 bits of size, 8 per tile.
pub(super) const TILE_LEVELS: usize = 8;

/// The highest level a path may name.
const LEVEL_MAX: u8 = 63;

/// The length prefix of a digest in an entry bundle.
const ENTRY_LENGTH: [u8; 2] = 32_u16.to_be_bytes();

/// A tile of hashes. Hash i of it is the root of the 256^`level` leaves
/// from (`index` * 256 + i) * 256^`level` on.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TileId {
    /// 0 for leaf hashes; at most 63.
    pub level: u8,
    /// The index on its level, from 0.
    pub index: u64,
    /// The number of hashes, 1 to 256; a full tile of 256 never changes.
    pub width: u16,
}

impl TileId {
    /// The full tile at an index.
    pub const fn full(level: u8, index: u64) -> Self {
        Self { level, index, width: TILE_WIDTH }
    }

    /// Whether it has all 256 hashes.
    pub const fn is_full(&self) -> bool {
        self.width == TILE_WIDTH
    }

    /// Whether a tree of this size contains all hashes of the tile.
    pub fn within(&self, size: TreeSize) -> bool {
        let end = self.index.checked_mul(256).and_then(|at| at.checked_add(self.width.into()));
        end.is_some_and(|end| end <= nodes_on(self.level, size))
    }

    /// The path it is served at, such as `tile/0/x001/x234/067.p/8`.
    pub fn path(&self) -> String {
        TilePath::Hashes(*self).to_string()
    }
}

/// A resource under `tile/`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TilePath {
    /// `tile/entries/<N>[.p/<W>]`, the entries of a tile of level 0.
    Entries { index: u64, width: u16 },
    /// `tile/<L>/<N>[.p/<W>]`.
    Hashes(TileId),
}

impl TilePath {
    /// Parses a canonical path.
    pub fn parse(text: &str) -> Result<Self, Error> {
        // Comparing with the formatted path refuses other spellings.
        Self::read(text).filter(|path| path.to_string() == text).ok_or(Error::TilePath)
    }

    fn read(text: &str) -> Option<Self> {
        let (kind, place) = text.strip_prefix("tile/")?.split_once('/')?;
        let (number, width) = match place.split_once(".p/") {
            Some((number, width)) => (number, width.parse().ok()?),
            None => (place, TILE_WIDTH),
        };
        if !(1..=TILE_WIDTH).contains(&width) {
            return None;
        }
        let index = number.split('/').try_fold(0_u64, |index, group| {
            let group: u16 = group.strip_prefix('x').unwrap_or(group).parse().ok()?;
            index.checked_mul(1000)?.checked_add(group.into())
        })?;
        if kind == "entries" {
            return Some(Self::Entries { index, width });
        }
        let level = kind.parse().ok().filter(|level| *level <= LEVEL_MAX)?;
        Some(Self::Hashes(TileId { level, index, width }))
    }
}

impl fmt::Display for TilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, width) = match self {
            Self::Entries { index, width } => {
                f.write_str("tile/entries/")?;
                (*index, *width)
            }
            Self::Hashes(tile) => {
                write!(f, "tile/{}/", tile.level)?;
                (tile.index, tile.width)
            }
        };
        let groups = (0..7_u32).rev().map(|group| (group, 1000_u64.pow(group)));
        for (_, unit) in groups.filter(|(group, unit)| *group > 0 && index >= *unit) {
            write!(f, "x{:03}/", index / unit % 1000)?;
        }
        write!(f, "{:03}", index % 1000)?;
        if width == TILE_WIDTH { Ok(()) } else { write!(f, ".p/{width}") }
    }
}

/// All tiles of a tree, level by level, left to right; the last of a level may
/// be partial. Each tile of level 0 has an entry bundle.
pub fn tiles_of(size: TreeSize) -> impl Iterator<Item = TileId> {
    (0..=LEVEL_MAX)
        .map(move |level| (level, nodes_on(level, size)))
        .take_while(|(_, n)| *n > 0)
        .flat_map(|(level, nodes)| {
            let index = nodes / 256;
            let width = u16::try_from(nodes % 256).ok().filter(|width| *width > 0);
            let partial = width.map(|width| TileId { level, index, width });
            (0..index).map(move |index| TileId::full(level, index)).chain(partial)
        })
}

/// Hashes on a tile level: complete subtrees of 256^`level` leaves.
fn nodes_on(level: u8, size: TreeSize) -> u64 {
    size.get().checked_shr(u32::from(level) * 8).unwrap_or(0)
}

/// The bytes of a hash tile.
pub fn hash_tile(hashes: &[Digest]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(hashes.len() * 32);
    hashes.iter().for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
    bytes
}

/// Reads a hash tile of a known width.
pub fn parse_hash_tile(bytes: &[u8], width: u16) -> Result<Vec<Digest>, Error> {
    let expected = usize::from(width) * 32;
    match bytes.as_chunks() {
        (hashes, []) if bytes.len() == expected => {
            Ok(hashes.iter().copied().map(Digest::from_bytes).collect())
        }
        _ => Err(Error::TileLength { expected, found: bytes.len() }),
    }
}

/// The bytes of an entry bundle. Our entries are digests of 32 bytes, each
/// prefixed with its 16-bit length.
pub fn entry_bundle(entries: &[Digest]) -> Vec<u8> {
    entries.iter().flat_map(|e| ENTRY_LENGTH.into_iter().chain(*e.as_bytes())).collect()
}

/// Reads an entry bundle.
pub fn parse_entry_bundle(bytes: &[u8]) -> Result<Vec<Digest>, Error> {
    let malformed = || Error::EntryBundle { length: bytes.len() };
    let (entries, []) = bytes.as_chunks::<34>() else { return Err(malformed()) };
    if entries.is_empty() || entries.len() > usize::from(TILE_WIDTH) {
        return Err(malformed());
    }
    let digest = |entry: &[u8; 34]| Digest::from_slice(entry.strip_prefix(&ENTRY_LENGTH)?);
    entries.iter().map(digest).collect::<Option<_>>().ok_or_else(malformed)
}
