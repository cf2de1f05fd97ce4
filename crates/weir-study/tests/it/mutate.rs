//! Tests with random text: the reader never panics, and its errors can be rendered.

use proptest::prelude::*;
use proptest::sample::Index;
use weir_study::studies;

use crate::read;

/// Reads a text, and renders its errors.
fn survives(text: &str) -> Result<(), TestCaseError> {
    if let Err(errors) = read(text) {
        prop_assert!(!errors.errors().is_empty(), "refused without a word");
        for error in errors.errors() {
            prop_assert!(text.get(error.span.clone()).is_some());
            prop_assert!(error.line >= 1 && error.column >= 1);
        }
        prop_assert!(!errors.render(true).is_empty());
    }
    Ok(())
}

/// Pieces of text that are likely to break a study.
#[rustfmt::skip]
const PIECES: [&str; 24] = [
    ":", "-", "[", "]", "{", "}", "\n", "  ", "&a", "*a", "!!str", "'", "\"", "|", ">-", "#", "%",
    "~", "0", "99999999999999999999", "\t", "é", "\r\n", "---\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn a_ready_made_study_with_pieces_put_in_and_taken_out(
        study in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), 0_usize..20, 0..PIECES.len()), 1..8),
    ) {
        let mut text: Vec<char> = study.get(studies()).text.chars().collect();
        for (at, out, piece) in changes {
            let start = at.index(text.len() + 1);
            let end = (start + out).min(text.len());
            text.splice(start..end, PIECES[piece].chars());
        }
        survives(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn a_ready_made_study_with_lines_swapped_and_indented(
        study in any::<Index>(),
        swaps in proptest::collection::vec((any::<Index>(), any::<Index>(), 0_usize..4), 1..6),
    ) {
        let mut lines: Vec<String> = study.get(studies()).text.lines().map(str::to_owned).collect();
        for (one, other, indent) in swaps {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(one, other);
            lines[one].insert_str(0, &" ".repeat(indent));
        }
        survives(&lines.join("\n"))?;
    }
}
