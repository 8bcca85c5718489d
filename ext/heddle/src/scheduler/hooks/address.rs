//! `address_resolve`: host names, by the system's own resolver.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use magnus::{Error, Ruby};

use crate::scheduler::Scheduler;
use crate::scheduler::wait::Wait;

/// Any port will do: only the address is of interest.
const NO_PORT: u16 = 0;

/// The addresses of a host, as getaddrinfo(3) tells them (so /etc/hosts and nsswitch.conf hold), or nil if there are
/// none; Ruby then raises its usual error.
pub fn address_resolve(ruby: &Ruby, scheduler: &Scheduler, hostname: String) -> Result<Option<Vec<String>>, Error> {
    let visit = scheduler.enter(ruby)?;
    let found = Arc::new(Mutex::new(Vec::new()));
    let answer = Arc::clone(&found);
    // A lookup cannot be cancelled and may take long: a fiber that is raised into leaves it to itself.
    scheduler.work(ruby, visit.key, Wait::Address, move || {
        let addresses = resolve(&hostname);
        *answer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = addresses;
    })?;
    let addresses = std::mem::take(&mut *found.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    Ok((!addresses.is_empty()).then_some(addresses))
}

fn resolve(hostname: &str) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for address in (hostname, NO_PORT).to_socket_addrs().into_iter().flatten() {
        let address = match address {
            SocketAddr::V6(address) if address.scope_id() != 0 => format!("{}%{}", address.ip(), address.scope_id()),
            address => address.ip().to_string(),
        };
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}
