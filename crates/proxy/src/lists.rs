//! Lists of names and of addresses, as rules ask them.
//!
//! A list of conditions becomes [`Names`] or [`Addresses`]: one look-up instead of one comparison for each condition. What
//! conditions name of geo files is read once and shared by all that name it; [`Lists::read_again`] reads the files again, and
//! [`Lists::take_up`] puts what they hold now in the place of what they held. A list that nobody names any more is let go of by [`Lists::sweep`].

mod addresses;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use sealway_v2ray::config::GeoList;

use crate::Error;
use crate::geo::{GeoError, GeoFile, Kind, find, folders};
use crate::settings::{DomainMatch, IpMatch, Settings};

pub(crate) use addresses::Addresses;
use addresses::Networks;
pub(crate) use names::Names;
use sealway_route::names::NameSet;

/// What a list of a geo file takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListSize {
    /// The list as a condition names it, such as `geosite:cn@ads`.
    pub name: String,
    /// Names and texts, or ranges of addresses.
    pub entries: usize,
    /// Its memory, in bytes.
    pub memory: usize,
}

/// A list of a geo file, whoever names it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    file: String,
    code: String,
    /// In order, each once.
    attributes: Vec<String>,
}

impl Key {
    fn new(list: &GeoList) -> Self {
        let mut attributes = list.attributes.clone();
        attributes.sort();
        attributes.dedup();
        Key {
            file: list.file.clone(),
            code: list.code.clone(),
            attributes,
        }
    }

    fn name(&self) -> String {
        let code = self.code.to_lowercase();
        let attributes: String = self.attributes.iter().map(|one| format!("@{one}")).collect();
        match self.file.as_str() {
            "geosite.dat" => format!("geosite:{code}{attributes}"),
            "geoip.dat" => format!("geoip:{code}"),
            file => format!("ext:{file}:{code}{attributes}"),
        }
    }
}

/// What the lists of files hold, all as they were read together. A list keeps its number when the files are read again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    names: Vec<Arc<NameSet>>,
    networks: Vec<Arc<Networks>>,
}

/// The sets of now. Whoever asks several conditions for one decision takes them once, so that no reload comes between.
pub(crate) type Current = Arc<ArcSwap<Sets>>;

/// Makes sets of lists of conditions.
#[derive(Debug)]
pub(crate) struct Lists {
    folders: Vec<PathBuf>,
    state: Mutex<State>,
    current: Current,
    /// Where lists that cannot be had are noted, if that is no reason to stop.
    noted: Option<Mutex<Vec<(String, String)>>>,
}

/// The number of a list, shared by all that name it.
type Number = Arc<usize>;

/// The number of a list that was noted as missing: no list has it.
const NONE: usize = usize::MAX;

/// The numbers of lists.
#[derive(Debug, Default)]
struct State {
    files: Files,
    names: BTreeMap<Key, Number>,
    networks: BTreeMap<Key, Number>,
    /// Numbers of lists that were let go of.
    free_names: Vec<usize>,
    free_networks: Vec<usize>,
}

/// What files hold now, to be taken up or not.
pub(crate) struct Fresh {
    names: Vec<(Number, Arc<NameSet>)>,
    networks: Vec<(Number, Arc<Networks>)>,
}

/// Puts a list where one was let go of, or behind the others.
fn put<T>(all: &mut Vec<Arc<T>>, free: &mut Vec<usize>, list: T) -> Number {
    let list = Arc::new(list);
    let number = match free.pop() {
        Some(number) => {
            all[number] = list;
            number
        }
        None => {
            all.push(list);
            all.len() - 1
        }
    };
    Arc::new(number)
}

/// Lets go of the lists that nobody names.
fn sweep<T: Default>(numbers: &mut BTreeMap<Key, Number>, free: &mut Vec<usize>, all: &mut [Arc<T>]) {
    numbers.retain(|_, number| {
        let named = Arc::strong_count(number) > 1;
        if !named {
            all[**number] = Arc::default();
            free.push(**number);
        }
        named
    });
}

/// Files that are open while lists are made of them.
type Files = BTreeMap<String, GeoFile>;

impl Default for Lists {
    fn default() -> Self {
        Lists::new(folders(None))
    }
}

impl Lists {
    /// Lists whose files are in one of these folders.
    pub(crate) fn new(folders: Vec<PathBuf>) -> Self {
        Lists {
            folders,
            state: Mutex::default(),
            current: Current::default(),
            noted: None,
        }
    }

    /// Lists whose files are where settings say.
    pub(crate) fn of(settings: &Settings) -> Self {
        match settings.geo_folders.as_slice() {
            [] => Lists::default(),
            folders => Lists::new(folders.to_vec()),
        }
    }

    /// The same; a list that cannot be had is noted and holds nothing, so that all of them are found at once.
    pub(crate) fn noting(settings: &Settings) -> Self {
        Lists {
            noted: Some(Mutex::default()),
            ..Lists::of(settings)
        }
    }

    /// The lists that were noted, each place once.
    pub(crate) fn noted(&self) -> Vec<Error> {
        let mut noted: Vec<_> = self.noted.iter().flat_map(|noted| lock(noted).clone()).collect();
        let mut seen = BTreeSet::new();
        noted.retain(|one| seen.insert(one.clone()));
        let all = noted.into_iter().map(|(place, what)| Error::config(place, what));
        all.collect()
    }

    /// The number of a list, or a note that it cannot be had.
    ///
    /// # Errors
    /// [`Error::Config`] for a list that cannot be had, where that is no note.
    pub(crate) fn number(&self, kind: Kind, list: &GeoList) -> Result<Number, Error> {
        match (self.known_or_read(kind, list), &self.noted) {
            (Ok(number), _) => Ok(number),
            (Err(error), Some(noted)) => {
                lock(noted).push((list.place.clone(), error.to_string()));
                Ok(Arc::new(NONE))
            }
            (Err(error), None) => Err(Error::config(&list.place, error.to_string())),
        }
    }

    /// The number that a list has, or that it is given now that it is read.
    fn known_or_read(&self, kind: Kind, list: &GeoList) -> Result<Number, GeoError> {
        let mut state = self.state();
        let key = Key::new(list);
        let State {
            files,
            names,
            networks,
            free_names,
            free_networks,
        } = &mut *state;
        let numbers = match kind {
            Kind::Names => names,
            Kind::Networks => networks,
        };
        if let Some(number) = numbers.get(&key) {
            return Ok(Arc::clone(number));
        }
        let file = self.file(files, &list.file, kind)?;
        let number = match kind {
            Kind::Names => {
                let set = names::read(file, &key)?;
                self.change(|sets| put(&mut sets.names, free_names, set))
            }
            Kind::Networks => {
                let set = addresses::read(file, &key)?;
                self.change(|sets| put(&mut sets.networks, free_networks, set))
            }
        };
        numbers.insert(key, Arc::clone(&number));
        Ok(number)
    }

    /// What the lists hold now, and after every reload.
    pub(crate) fn current(&self) -> Current {
        Arc::clone(&self.current)
    }

    /// The names that one of the conditions at `place`, such as `routing.rules[0].domain`, holds for.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of the condition that makes no set.
    pub(crate) fn names(&self, place: &str, conditions: &[DomainMatch]) -> Result<Names, Error> {
        names::build(place, conditions, self.current(), |list| self.number(Kind::Names, list))
    }

    /// The addresses that one of the conditions holds for.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of a list that cannot be had.
    pub(crate) fn addresses(&self, conditions: &[IpMatch]) -> Result<Addresses, Error> {
        addresses::build(conditions, self.current(), |list| self.number(Kind::Networks, list))
    }

    /// Puts changed sets in the place of those of now, in one step. The state must be locked.
    fn change<T>(&self, change: impl FnOnce(&mut Sets) -> T) -> T {
        let mut sets = Sets::clone(&self.current.load());
        let made = change(&mut sets);
        self.current.store(Arc::new(sets));
        made
    }

    /// Closes the files. They are opened again when something else is asked of them.
    pub(crate) fn close(&self) {
        self.state().files.clear();
    }

    /// Reads the files of these lists again, if they were read before. Takes as long as that does.
    ///
    /// # Errors
    /// [`GeoError`] for the first list that cannot be had any more.
    pub(crate) fn read_again(&self, named: &[(Kind, &GeoList)]) -> Result<Fresh, GeoError> {
        let (names, networks) = {
            let state = self.state();
            let of = |kind, all: &BTreeMap<Key, Number>| -> BTreeMap<Key, Number> {
                let named = named.iter().filter(|(of, _)| *of == kind);
                let named = named.filter_map(|(_, list)| all.get_key_value(&Key::new(list)));
                named.map(|(key, number)| (key.clone(), Arc::clone(number))).collect()
            };
            (of(Kind::Names, &state.names), of(Kind::Networks, &state.networks))
        };
        let mut files = Files::new();
        let mut fresh = Fresh {
            names: Vec::with_capacity(names.len()),
            networks: Vec::with_capacity(networks.len()),
        };
        for (key, number) in names {
            let file = self.file(&mut files, &key.file, Kind::Names)?;
            fresh.names.push((number, Arc::new(names::read(file, &key)?)));
        }
        for (key, number) in networks {
            let file = self.file(&mut files, &key.file, Kind::Networks)?;
            fresh.networks.push((number, Arc::new(addresses::read(file, &key)?)));
        }
        Ok(fresh)
    }

    /// Puts what was read again in the place of what lists held, in one step.
    pub(crate) fn take_up(&self, fresh: Fresh) {
        let _state = self.state();
        self.change(|sets| {
            for (number, set) in fresh.names {
                sets.names[*number] = set;
            }
            for (number, set) in fresh.networks {
                sets.networks[*number] = set;
            }
        });
    }

    /// Lets go of lists that nobody names any more.
    pub(crate) fn sweep(&self) {
        let mut state = self.state();
        let State {
            names,
            networks,
            free_names,
            free_networks,
            ..
        } = &mut *state;
        self.change(|sets| {
            sweep(names, free_names, &mut sets.names);
            sweep(networks, free_networks, &mut sets.networks);
        });
    }

    /// What each list of a file takes.
    pub(crate) fn sizes(&self) -> Vec<ListSize> {
        let state = self.state();
        let sets = self.current.load();
        let names = state.names.iter().map(|(key, number)| {
            let set = &sets.names[**number];
            (key, set.len(), set.memory())
        });
        let networks = state.networks.iter().map(|(key, number)| {
            let set = &sets.networks[**number].set;
            (key, set.len(), set.memory())
        });
        let all = names.chain(networks).map(|(key, entries, memory)| ListSize {
            name: key.name(),
            entries,
            memory,
        });
        all.collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done in it.
        lock(&self.state)
    }

    fn file<'f>(&self, files: &'f mut Files, name: &str, kind: Kind) -> Result<&'f mut GeoFile, GeoError> {
        let id = format!("{kind:?} {name}");
        if !files.contains_key(&id) {
            let file = GeoFile::open(&find(name, &self.folders)?, kind)?;
            files.insert(id.clone(), file);
        }
        files.get_mut(&id).ok_or_else(|| GeoError::Missing {
            name: name.to_owned(),
            folders: self.folders.clone(),
        })
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
