//! Connections by key. A key is never reused: events and timers that outlive their connection find nothing.

/// Identifies one entry: its position, and how often the position was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    place: u32,
    turn: u32,
}

impl Key {
    /// Encodes the key for epoll's 64 bits of user data.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.place)
    }

    pub(crate) fn from_bits(bits: u64) -> Key {
        Key {
            // The low half, then the high half.
            place: bits as u32,
            turn: (bits >> 32) as u32,
        }
    }
}

#[derive(Debug)]
struct Entry<T> {
    turn: u32,
    value: Option<T>,
}

/// Values at positions that are reused once they are free.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[index as usize];
            entry.value = Some(value);
            let turn = entry.turn;
            return Key { place: index, turn };
        }
        // Fits: each entry holds a descriptor, of which there are at most 2^31.
        let index = self.entries.len() as u32;
        self.entries.push(Entry { turn: 0, value: Some(value) });
        Key { place: index, turn: 0 }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.place as usize)?;
        entry.value.as_mut().filter(|_| entry.turn == key.turn)
    }

    pub(crate) fn remove(&mut self, key: Key) {
        if self.get_mut(key).is_some() {
            let entry = &mut self.entries[key.place as usize];
            entry.value = None;
            // Half of all turns: the upper ones name what is no connection.
            entry.turn = (entry.turn + 1) & (u32::MAX >> 1);
            self.free.push(key.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        slab.remove(a);
        slab.remove(a);
        let c = slab.insert('c');
        assert_eq!((c.place, c.turn), (a.place, a.turn + 1));
        assert_eq!(slab.get_mut(a), None);
        assert_eq!(slab.get_mut(b), Some(&mut 'b'));
        assert_eq!(slab.get_mut(Key::from_bits(c.to_bits())), Some(&mut 'c'));
        assert_eq!(slab.insert('d').place, 2, "a place is free only once");
    }
}
