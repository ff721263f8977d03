//! Lists of names and of addresses, as rules ask them.
//!
//! A list of conditions becomes [`Names`] or [`Addresses`]: one look-up instead of one comparison for each condition. What
//! conditions name of geo files is read once and shared by all that name it; [`Lists::reload`] reads the files again and
//! puts what they hold now in the place of what they held.

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
#[non_exhaustive]
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
    /// Held while files are read again. A reload that begins later reads what is there later, so it must not end first.
    reloading: Mutex<()>,
    state: Mutex<State>,
    current: Current,
    /// Where lists that cannot be had are noted, if that is no reason to stop.
    noted: Option<Mutex<Vec<(String, String)>>>,
}

/// The number of a list that was noted as missing: no list has it.
const NONE: usize = usize::MAX;

/// The numbers of lists.
#[derive(Debug, Default)]
struct State {
    files: Files,
    names: BTreeMap<Key, usize>,
    networks: BTreeMap<Key, usize>,
}

/// Files that are open while lists are made of them.
type Files = BTreeMap<String, GeoFile>;

/// The lists of geo files that the configuration of a server names. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GeoLists(pub(crate) Arc<Lists>);

impl GeoLists {
    /// Reads the geo files again and puts the lists in them in the place of the older ones, all or none. Connections go on
    /// meanwhile. Gives the number of lists.
    ///
    /// # Errors
    /// [`GeoError`] for the first list that cannot be had any more, and [`GeoError::Stopped`]; every older one stays.
    pub async fn reload(&self) -> Result<usize, GeoError> {
        let lists = Arc::clone(&self.0);
        // Files are read where that may take its time.
        let read = tokio::task::spawn_blocking(move || lists.reload());
        read.await.unwrap_or(Err(GeoError::Stopped))
    }

    /// What each list takes.
    pub fn sizes(&self) -> Vec<ListSize> {
        self.0.sizes()
    }
}

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
            reloading: Mutex::default(),
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
    fn note(&self, list: &GeoList, found: Result<usize, GeoError>) -> Result<usize, Error> {
        match (found, &self.noted) {
            (Ok(number), _) => Ok(number),
            (Err(error), Some(noted)) => {
                lock(noted).push((list.place.clone(), error.to_string()));
                Ok(NONE)
            }
            (Err(error), None) => Err(Error::config(&list.place, error.to_string())),
        }
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
        let number = |list: &GeoList| {
            let mut state = self.state();
            let State { files, names, .. } = &mut *state;
            let key = Key::new(list);
            if let Some(number) = names.get(&key) {
                return Ok(*number);
            }
            let set = names::read(self.file(files, &list.file, Kind::Names)?, &key)?;
            let number = self.change(|sets| {
                sets.names.push(Arc::new(set));
                sets.names.len() - 1
            });
            names.insert(key, number);
            Ok(number)
        };
        names::build(place, conditions, self.current(), |list| self.note(list, number(list)))
    }

    /// The addresses that one of the conditions at `place`, such as `routing.rules[0].ip`, holds for.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of the condition that makes no set.
    pub(crate) fn addresses(&self, place: &str, conditions: &[IpMatch]) -> Result<Addresses, Error> {
        let number = |list: &GeoList| {
            let mut state = self.state();
            let State { files, networks, .. } = &mut *state;
            let key = Key::new(list);
            if let Some(number) = networks.get(&key) {
                return Ok(*number);
            }
            let set = addresses::read(self.file(files, &list.file, Kind::Networks)?, &key)?;
            let number = self.change(|sets| {
                sets.networks.push(Arc::new(set));
                sets.networks.len() - 1
            });
            networks.insert(key, number);
            Ok(number)
        };
        addresses::build(place, conditions, self.current(), |list| self.note(list, number(list)))
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

    /// Reads every file again and puts the lists that are in them now in the place of the older ones, all or none. Gives the
    /// number of lists. Takes as long as reading the files.
    ///
    /// # Errors
    /// [`GeoError`] for the first list that cannot be had any more; every older one stays.
    pub(crate) fn reload(&self) -> Result<usize, GeoError> {
        self.reload_and(|| ())
    }

    /// Reads every file again, does something, and takes up what was read.
    fn reload_and(&self, before_use: impl FnOnce()) -> Result<usize, GeoError> {
        let _alone = lock(&self.reloading);
        let (names, networks) = {
            let state = self.state();
            (state.names.clone(), state.networks.clone())
        };
        let mut files = Files::new();
        let mut new_names = Vec::with_capacity(names.len());
        for (key, number) in &names {
            let file = self.file(&mut files, &key.file, Kind::Names)?;
            new_names.push((*number, Arc::new(names::read(file, key)?)));
        }
        let mut new_networks = Vec::with_capacity(networks.len());
        for (key, number) in &networks {
            let file = self.file(&mut files, &key.file, Kind::Networks)?;
            new_networks.push((*number, Arc::new(addresses::read(file, key)?)));
        }
        before_use();
        let count = new_names.len() + new_networks.len();
        let _state = self.state();
        self.change(|sets| {
            for (number, set) in new_names {
                sets.names[number] = set;
            }
            for (number, set) in new_networks {
                sets.networks[number] = set;
            }
        });
        Ok(count)
    }

    /// What each list of a file takes.
    pub(crate) fn sizes(&self) -> Vec<ListSize> {
        let state = self.state();
        let sets = self.current.load();
        let names = state.names.iter().map(|(key, number)| {
            let set = &sets.names[*number];
            (key, set.len(), set.memory())
        });
        let networks = state.networks.iter().map(|(key, number)| {
            let set = &sets.networks[*number].set;
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
