//! Parts of sessions that most sessions do not have.

use core::ops::{Deref, DerefMut};

/// Part that most sessions have nothing in.
pub(crate) trait Part: Default + 'static {
    /// The part of a session that has nothing in it.
    fn nothing() -> &'static Self;

    fn is_nothing(&self) -> bool;
}

/// Place of such a part: eight octets, and the part itself from the first change until [`Rare::tidy`] finds nothing in it.
#[derive(Debug)]
pub(crate) struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Rare(None)
    }
}

impl<T: Part> Rare<T> {
    pub fn new(part: T) -> Self {
        Rare((!part.is_nothing()).then(|| Box::new(part)))
    }

    /// The part, if something may be in it: to take something out of it.
    pub fn held(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Gives the memory of the part back if nothing is in it.
    pub fn tidy(&mut self) {
        self.0.take_if(|part| part.is_nothing());
    }
}

impl<T: Part> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(part) => part,
            None => T::nothing(),
        }
    }
}

impl<T: Part> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Part for String {
        fn nothing() -> &'static Self {
            static NOTHING: String = String::new();
            &NOTHING
        }

        fn is_nothing(&self) -> bool {
            self.is_empty()
        }
    }

    #[test]
    fn only_a_part_with_something_in_it_takes_memory() {
        assert_eq!(size_of::<Rare<String>>(), 8);
        let mut part = Rare::new(String::new());
        assert!(part.is_empty() && part.held().is_none());
        part.push('a');
        part.tidy();
        assert_eq!(*part, "a");
        part.held().unwrap().clear();
        part.tidy();
        assert!(part.held().is_none());
    }
}
