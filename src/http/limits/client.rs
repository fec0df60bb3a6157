//! Who sent a request, as far as limits go, and slots for each client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{ConnectInfo, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bits of an IPv6 address that a client can choose.
const CLIENT_BITS: u32 = 64;

/// What counts as one client: an IPv4 address, or the IPv6 network of 64 bits
/// in which a client can take any address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(in crate::http) struct ClientNetwork(IpAddr);

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        // A dual-stack socket reports an IPv4 client as a mapped address.
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & (u128::MAX << CLIENT_BITS);
                Ipv6Addr::from_bits(network).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl ClientNetwork {
    /// The client of a request; none without a connection. Behind a proxy it
    /// is the last address in the header, which the proxy appended; the client
    /// can write the others itself.
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

/// A number of slots for each client, shared by all request tasks. A client
/// without a user has no entry.
#[derive(Clone)]
pub(in crate::http) struct ClientSlots(Arc<Table>);

struct Table {
    /// Fixed at start.
    per_client: usize,
    /// Locked by each task for one lookup, never across an await.
    clients: Mutex<HashMap<ClientNetwork, Slots>>,
}

struct Slots {
    free: Arc<Semaphore>,
    /// Requests that have a slot or wait for one.
    users: usize,
}

impl Table {
    fn clients(&self) -> MutexGuard<'_, HashMap<ClientNetwork, Slots>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSlots {
    pub(in crate::http) fn new(per_client: usize) -> Self {
        Self(Arc::new(Table { per_client, clients: Mutex::default() }))
    }

    /// A slot, if one is free.
    pub(in crate::http) fn try_acquire(&self, client: ClientNetwork) -> Option<ClientSlot> {
        let user = self.user(client);
        let permit = user.free.clone().try_acquire_owned().ok()?;
        Some(ClientSlot { _permit: permit, _user: user })
    }

    /// A slot, as soon as one is free.
    pub(super) async fn acquire(&self, client: ClientNetwork) -> Option<ClientSlot> {
        let user = self.user(client);
        let permit = user.free.clone().acquire_owned().await.ok()?;
        Some(ClientSlot { _permit: permit, _user: user })
    }

    fn user(&self, client: ClientNetwork) -> User {
        let mut clients = self.0.clients();
        let new = || Slots { free: Arc::new(Semaphore::new(self.0.per_client)), users: 0 };
        let slots = clients.entry(client).or_insert_with(new);
        slots.users += 1;
        User { free: slots.free.clone(), table: self.0.clone(), client }
    }
}

/// Keeps the entry of its client in the table.
struct User {
    free: Arc<Semaphore>,
    table: Arc<Table>,
    client: ClientNetwork,
}

impl Drop for User {
    fn drop(&mut self) {
        let mut clients = self.table.clients();
        if let Some(slots) = clients.get_mut(&self.client) {
            slots.users -= 1;
            if slots.users == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// One slot of a client, free again when dropped.
pub(in crate::http) struct ClientSlot {
    _permit: OwnedSemaphorePermit,
    _user: User,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> ClientNetwork {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn ipv6_client_is_its_network() {
        let rows = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("::1", "127.0.0.1", false),
        ];
        for (one, other, is_same) in rows {
            assert_eq!(client(one) == client(other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn slots_are_per_client_and_table_is_emptied() {
        let slots = ClientSlots::new(2);
        let acquire = |address: &str| slots.try_acquire(client(address));
        let (first, second) = (acquire("192.0.2.1").unwrap(), acquire("192.0.2.1").unwrap());
        assert!(acquire("192.0.2.1").is_none(), "both are taken");
        let other = acquire("192.0.2.2").unwrap();
        drop(first);
        let third = acquire("192.0.2.1").unwrap();
        drop((second, third, other));
        assert!(slots.0.clients().is_empty());
    }
}
