//! Whom a request comes from, as far as limits go, and how much each of them
//! has under way.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{ConnectInfo, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bits of an IPv6 address that one client has at hand.
const CLIENT_BITS: u32 = 64;

/// What counts as one client: an IPv4 address, or the network of 64 bits that
/// an IPv6 client is given, in which it can take any address it likes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        // An IPv4 client of a socket that takes both is still an IPv4 client.
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << CLIENT_BITS);
                Ipv6Addr::from_bits(network).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl Network {
    /// Of a request. Behind a proxy it is the last address it appended; a
    /// client can write the others itself. None without a connection.
    pub(super) fn of(request: &Request, trust_forwarded_for: bool) -> Option<Self> {
        if trust_forwarded_for {
            let forwarded = request.headers().get_all("x-forwarded-for").iter().next_back();
            let last = forwarded.and_then(|v| v.to_str().ok()?.rsplit(',').next());
            if let Some(address) = last.and_then(|a| a.trim().parse::<IpAddr>().ok()) {
                return Some(address.into());
            }
        }
        let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
        connection.map(|ConnectInfo(peer)| peer.ip().into())
    }
}

/// So many at once for each network. What nobody uses is not kept.
#[derive(Clone)]
pub(super) struct Shares(Arc<Table>);

struct Table {
    each: usize,
    networks: Mutex<HashMap<Network, Share>>,
}

struct Share {
    seats: Arc<Semaphore>,
    users: usize,
}

impl Table {
    fn networks(&self) -> MutexGuard<'_, HashMap<Network, Share>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shares {
    pub(super) fn new(each: usize) -> Self {
        Self(Arc::new(Table { each, networks: Mutex::default() }))
    }

    /// One who has, or wants, a seat of its network.
    pub(super) fn user(&self, network: Network) -> User {
        let mut networks = self.0.networks();
        let fresh = || Share { seats: Arc::new(Semaphore::new(self.0.each)), users: 0 };
        let share = networks.entry(network).or_insert_with(fresh);
        share.users += 1;
        User { seats: share.seats.clone(), table: self.0.clone(), network }
    }
}

/// Keeps the share of its network, as long as it lives.
pub(super) struct User {
    seats: Arc<Semaphore>,
    table: Arc<Table>,
    network: Network,
}

impl User {
    /// A seat at once, or none.
    pub(super) fn sit(self) -> Option<Seat> {
        let permit = self.seats.clone().try_acquire_owned().ok()?;
        Some(Seat { _permit: permit, _user: self })
    }

    /// A seat when there is one.
    pub(super) async fn seat(self) -> Option<Seat> {
        let permit = self.seats.clone().acquire_owned().await.ok()?;
        Some(Seat { _permit: permit, _user: self })
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut networks = self.table.networks();
        if let Some(share) = networks.get_mut(&self.network) {
            share.users -= 1;
            if share.users == 0 {
                networks.remove(&self.network);
            }
        }
    }
}

/// One of the seats of a network; given back when dropped.
pub(super) struct Seat {
    _permit: OwnedSemaphorePermit,
    _user: User,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> Network {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let rows = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("::1", "127.0.0.1", false),
        ];
        for (one, other, is_same) in rows {
            assert_eq!(network(one) == network(other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn each_network_has_its_seats_and_nothing_is_left_behind() {
        let shares = Shares::new(2);
        let sit = |address: &str| shares.user(network(address)).sit();
        let (first, second) = (sit("192.0.2.1").unwrap(), sit("192.0.2.1").unwrap());
        assert!(sit("192.0.2.1").is_none(), "both are taken");
        let other = sit("192.0.2.2").unwrap();
        drop(first);
        let third = sit("192.0.2.1").unwrap();
        drop((second, third, other));
        assert!(shares.0.networks().is_empty());
    }
}
