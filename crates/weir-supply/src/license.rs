//! Licence expressions (SPDX 2.3, annex D), limited to the forms that packages use.

/// Returns true if a licensee can choose licences that are all allowed. `A/B`, which older packages use, means `A OR
/// B`.
pub(crate) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let choice = any(&mut words, allowed);
    choice == Some(true) && words.next().is_none()
}

/// Returns the expression in SPDX's own spelling.
pub(crate) fn spelled(expression: &str) -> String {
    let words: Vec<&str> = expression.split('/').map(str::trim).collect();
    words.join(" OR ")
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

/// Parses `A OR B` and returns true if it is allowed; `None` if the text is not an expression.
fn any(words: &mut Words<'_>, allowed: &[String]) -> Option<bool> {
    let mut choice = all(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        choice |= all(words, allowed)?;
    }
    Some(choice)
}

/// Parses `A AND B` and returns true if it is allowed; `None` if the text is not an expression.
fn all(words: &mut Words<'_>, allowed: &[String]) -> Option<bool> {
    let mut choice = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        choice &= one(words, allowed)?;
    }
    Some(choice)
}

/// Parses a licence, perhaps with an exception, or an expression in brackets, and returns true if it is allowed; `None`
/// if the text is neither.
fn one(words: &mut Words<'_>, allowed: &[String]) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let choice = any(words, allowed)?;
        return (words.next()? == ")").then_some(choice);
    }
    let is_name = !matches!(word, ")" | "OR" | "AND" | "WITH");
    let mut license = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        license = format!("{license} WITH {}", words.next()?);
    }
    is_name.then(|| allowed.contains(&license))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licensee_chooses_among_what_is_allowed() {
        let allowed = ["MIT", "Apache-2.0", "X WITH Y"].map(str::to_owned);
        for right in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only/MIT",
            "MIT AND Apache-2.0",
            "(GPL-3.0-only OR MIT) AND (Apache-2.0)",
            "GPL-3.0-only AND MIT OR Apache-2.0",
            "X WITH Y",
        ] {
            assert!(is_allowed(right, &allowed), "{right}");
        }
        #[rustfmt::skip]
        let words = [
            "", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Apache-2.0) AND GPL-3.0-only",
            "MIT WITH Y", "X", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "OR MIT",
        ];
        for wrong in words {
            assert!(!is_allowed(wrong, &allowed), "{wrong}");
        }
        assert_eq!(spelled("MIT/Apache-2.0"), "MIT OR Apache-2.0");
    }
}
