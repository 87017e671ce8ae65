//! Places of 16-bit numbers: ports and lengths.

use std::collections::HashMap;

use super::sets::Cut;

const PAGE: usize = 64;

/// A table in two steps: the upper ten bits select a page of 64 places. Equal pages are one.
pub(super) struct Pages {
    top: Box<[u16; 65_536 / PAGE]>,
    pages: Box<[[u16; PAGE]]>,
}

impl Pages {
    /// The places of numbers, of which that of class 0 is `first`.
    pub(super) fn new(cut: &Cut, first: u16) -> Pages {
        let mut top = Box::new([0; 65_536 / PAGE]);
        let mut pages = Vec::new();
        let mut known = HashMap::new();
        let mut interval = 0;
        for (number, entry) in top.iter_mut().enumerate() {
            let mut page = [first + cut.classes[interval]; PAGE];
            let low = (number * PAGE) as u32;
            // A bound in this page changes the place of all that is behind it.
            while let Some(bound) = cut
                .bounds
                .get(interval)
                .filter(|bound| **bound < low + PAGE as u32)
            {
                interval += 1;
                page[(*bound - low) as usize..].fill(first + cut.classes[interval]);
            }
            *entry = *known.entry(page).or_insert_with(|| {
                pages.push(page);
                pages.len() as u16 - 1
            });
        }
        Pages {
            top,
            pages: pages.into(),
        }
    }

    #[inline(always)]
    pub(super) fn place(&self, number: u16) -> u16 {
        let number = usize::from(number);
        let page = self.top[number / PAGE];
        self.pages[usize::from(page)][number % PAGE]
    }

    pub(super) fn octets(&self) -> usize {
        size_of_val(&*self.top) + size_of_val(&*self.pages)
    }
}
