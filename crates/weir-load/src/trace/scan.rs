//! Reading a line from left to right.

/// A line and how far it was read. What fails leaves the place where it failed, for the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(line: &'a [u8]) -> Scan<'a> {
        Scan { line, at: 0 }
    }

    /// A part of a line, read with the line's columns.
    pub(super) fn part(line: &'a [u8], from: usize, to: usize) -> Scan<'a> {
        Scan {
            line: &line[..to],
            at: from,
        }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// All of the line.
    pub(super) fn whole(&self) -> &'a [u8] {
        self.line
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.line.len());
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn byte(&mut self, byte: u8) -> Option<()> {
        self.any_of(&[byte]).map(drop)
    }

    pub(super) fn any_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let next = self.peek().filter(|next| bytes.contains(next))?;
        self.at += 1;
        Some(next)
    }

    /// White space.
    pub(super) fn blanks(&mut self) {
        let blanks = self.rest().iter().take_while(|b| b.is_ascii_whitespace());
        self.at += blanks.count();
    }

    /// A number of `least` to `most` digits, at most 18; more are left unread.
    pub(super) fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.rest().iter().take(most);
        let digits = digits.take_while(|b| b.is_ascii_digit()).count();
        if digits < least {
            return None;
        }
        let text = &self.rest()[..digits];
        self.at += digits;
        let value = |sum: i64, digit: &u8| sum * 10 + i64::from(digit - b'0');
        Some(text.iter().fold(0, value))
    }
}
