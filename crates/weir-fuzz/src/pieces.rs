//! Bytes cut into the pieces that reads may bring.

use crate::dice::Dice;

/// Longest piece, in bytes, of each of the ways to cut at random.
const LONGEST: [u32; 5] = [2, 7, 40, 400, 4000];

/// Several ways to cut `bytes`: byte by byte, in two, and at random.
pub(crate) fn cuttings(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut dice = Dice::of(bytes);
    let middle = dice.below(bytes.len() as u32 + 1) as usize;
    let (front, back) = bytes.split_at(middle);
    let mut all = vec![bytes.chunks(1).collect(), vec![front, back]];
    for longest in LONGEST {
        let mut rest = bytes;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let length = (1 + dice.below(longest) as usize).min(rest.len());
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        all.push(pieces);
    }
    all
}
