//! Tables that give out numbers for what must not leave the driver.

/// Things by number. A number is used again only after its thing was taken out.
#[derive(Debug)]
pub(super) struct Table<T> {
    places: Vec<Option<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { places: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(super) fn add(&mut self, thing: T) -> u32 {
        let name = self.places.iter().position(Option::is_none).unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[name] = Some(thing);
        name as u32
    }

    pub(super) fn get(&self, name: u32) -> Option<&T> {
        self.places.get(name as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, name: u32) -> Option<&mut T> {
        self.places.get_mut(name as usize)?.as_mut()
    }

    pub(super) fn take(&mut self, name: u32) -> Option<T> {
        self.places.get_mut(name as usize)?.take()
    }

    /// The numbers in use.
    pub(super) fn names(&self) -> Vec<u32> {
        (0..self.places.len() as u32)
            .filter(|&name| self.get(name).is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again() {
        let mut table = Table::default();
        assert_eq!((table.add('a'), table.add('b')), (0, 1));
        assert_eq!((table.take(0), table.take(0), table.get(7)), (Some('a'), None, None));
        assert_eq!((table.add('c'), table.names()), (0, vec![0, 1]));
        assert_eq!(table.get_mut(1), Some(&mut 'b'));
    }
}
