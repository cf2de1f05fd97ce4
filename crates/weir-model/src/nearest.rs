//! Search for the valid name that the user most likely meant.

/// Returns the name among `names` that is closest to `text`, if one is close, or else one that contains `text`. In
/// `text`, upper case and `_` are treated as lower case and `-`.
pub fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let wanted = text.replace('_', "-").to_ascii_lowercase();
    names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, &wanted), *name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
        .or_else(|| names.iter().find(|name| wanted.len() >= 3 && name.contains(&wanted)).copied())
}
