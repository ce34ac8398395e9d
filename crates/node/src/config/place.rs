//! Where replicas are, as far as that is known: a name that nobody can look up costs its own replica and no other.

use super::Address;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for names, all together, before they are looked up in the background.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before a name that was not known is looked up again.
const PAUSE: Duration = Duration::from_secs(1);

/// Where somebody is. A name is looked up until it is known, by a thread of its own; a copy knows what the others know.
#[derive(Clone, Debug)]
pub struct Place(Arc<OnceLock<SocketAddr>>);

impl Place {
    /// The address, if it is known by now.
    pub fn get(&self) -> Option<SocketAddr> {
        self.0.get().copied()
    }
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Self(Arc::new(address.into()))
    }
}

/// Where all replicas are, by number.
#[derive(Clone, Debug)]
pub struct Places(Vec<Place>);

impl Places {
    /// Looks the names up, all at the same time. Blocks for two seconds at most: those that are not known by then are
    /// looked up again and again, until they are or nobody wants to know any more. A name without a thread stays
    /// unknown.
    pub fn find<'a>(addresses: impl Iterator<Item = &'a Address>) -> Self {
        let until = Instant::now() + PATIENCE;
        let (tried, answers) = mpsc::channel();
        let place = |address: &Address| match address.numeric() {
            Some(known) => known.into(),
            None => look_up(address.clone(), tried.clone()),
        };
        let places: Vec<Place> = addresses.map(place).collect();
        drop(tried);
        for _ in places.iter().filter(|place| place.get().is_none()) {
            if answers.recv_timeout(until.saturating_duration_since(Instant::now())).is_err() {
                break;
            }
        }
        Self(places)
    }

    /// Each of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Place> {
        self.0.iter()
    }
}

impl FromIterator<SocketAddr> for Places {
    fn from_iter<T: IntoIterator<Item = SocketAddr>>(addresses: T) -> Self {
        Self(addresses.into_iter().map(Place::from).collect())
    }
}

impl From<Vec<SocketAddr>> for Places {
    fn from(addresses: Vec<SocketAddr>) -> Self {
        addresses.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Places {
    type Item = &'a Place;
    type IntoIter = std::slice::Iter<'a, Place>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A place that is not known yet. `tried` hears of the first attempt.
fn look_up(address: Address, tried: mpsc::Sender<()>) -> Place {
    let place = Place(Arc::default());
    let wanted = Arc::downgrade(&place.0);
    let _ = thread::Builder::new().name("resolve".into()).spawn(move || resolve_until_known(&address, &wanted, &tried));
    place
}

fn resolve_until_known(address: &Address, wanted: &Weak<OnceLock<SocketAddr>>, tried: &mpsc::Sender<()>) {
    let mut told = false;
    loop {
        let found = address.resolve();
        let Some(place) = wanted.upgrade() else { return };
        let error = match found {
            Ok(known) => {
                let _ = place.set(known);
                let _ = tried.send(());
                return;
            }
            Err(error) => error,
        };
        drop(place);
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(event = "name-unknown", name = %address, "cannot be found, and is tried again: {error}");
            let _ = tried.send(());
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_costs_its_own_place_only() {
        let names = ["127.0.0.1:1", "nobody.invalid:2", "localhost:3", "[::1]:4"];
        let addresses: Vec<Address> = names.iter().map(|name| name.parse().unwrap()).collect();
        let begin = Instant::now();
        let places = Places::find(addresses.iter());
        assert!(begin.elapsed() < PATIENCE + Duration::from_secs(1));
        let ports: Vec<_> = places.iter().map(|place| place.get().map(|address| address.port())).collect();
        assert_eq!(ports, [Some(1), None, Some(3), Some(4)]);
    }

    #[test]
    fn whoever_is_forgotten_is_looked_up_no_longer() {
        let (tried, _answers) = mpsc::channel();
        let place = Place(Arc::default());
        let wanted = Arc::downgrade(&place.0);
        drop(place);
        resolve_until_known(&"nobody.invalid:2".parse().unwrap(), &wanted, &tried);
    }
}
