//! Ways to cut bytes into the pieces that reads may return.

use crate::dice::Dice;

/// Longest piece in bytes for each of the random ways to cut.
const LONGEST: [u32; 5] = [2, 7, 40, 400, 4000];

/// Cuts `bytes` in several ways: byte by byte, in two, and at random.
pub(crate) fn cuttings(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut dice = Dice::of(bytes);
    let middle = dice.below(bytes.len() as u32 + 1) as usize;
    let (front, back) = bytes.split_at(middle);
    let mut all = vec![bytes.chunks(1).collect(), vec![front, back]];
    for longest in LONGEST {
        let mut remaining = bytes;
        let mut pieces = Vec::new();
        while !remaining.is_empty() {
            let length = (1 + dice.below(longest) as usize).min(remaining.len());
            let (piece, after) = remaining.split_at(length);
            pieces.push(piece);
            remaining = after;
        }
        all.push(pieces);
    }
    all
}
