//! DNS lookups that return public addresses only.
//!
//! The client connects to exactly the addresses returned here, so there is no
//! second lookup that could answer differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Error;

/// DNS that refuses names with an address that is not public.
pub(super) struct CheckedDns {
    allow_private: bool,
}

impl CheckedDns {
    pub(super) fn new(allow_private: bool) -> Self {
        Self { allow_private }
    }
}

impl Resolve for CheckedDns {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            // Port 0: the client uses the port of the URL.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0))
                .await
                .map_err(|_| Error::NoAddress)?
                .collect();
            if found.is_empty() {
                return Err(Error::NoAddress.into());
            }
            // One private address is enough to refuse the name.
            match found.iter().map(SocketAddr::ip).find(|ip| !is_public(*ip)) {
                Some(address) if !allow_private => Err(Error::PrivateAddress { address }.into()),
                _ => Ok::<Addrs, _>(Box::new(found.into_iter())),
            }
        })
    }
}

/// IPv4 blocks of the IANA special-purpose registry, multicast and reserved.
const V4_SPECIAL: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 3),
];

/// IPv6 blocks inside global unicast that are not: protocol assignments and
/// Teredo, documentation, and 6to4, which hides an IPv4 address.
const V6_SPECIAL: &[([u16; 2], u32)] =
    &[([0x2001, 0], 23), ([0x2001, 0xdb8], 32), ([0x2002, 0], 16), ([0x3fff, 0], 20)];

/// Whether an address is one of the public Internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !V4_SPECIAL.iter().any(|(block, bits)| {
            v4.to_bits() >> (32 - bits) == Ipv4Addr::from(*block).to_bits() >> (32 - bits)
        }),
        // Mapped, translated, local and multicast addresses lie outside 2000::/3.
        IpAddr::V6(v6) => {
            let special = V6_SPECIAL.iter().any(|([a, b], bits)| {
                let block = Ipv6Addr::new(*a, *b, 0, 0, 0, 0, 0, 0);
                v6.to_bits() >> (128 - bits) == block.to_bits() >> (128 - bits)
            });
            v6.to_bits() >> 125 == 1 && !special
        }
    }
}
