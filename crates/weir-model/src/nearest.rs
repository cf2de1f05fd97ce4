//! The valid name that somebody most likely meant.

/// The name among `names` that is nearest to `text`, if one is near, or else that has `text` in it. Upper case
/// and `_` are taken for lower case and `-`.
pub fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let wanted = text.replace('_', "-").to_ascii_lowercase();
    let has = |name: &&&str| wanted.len() >= 3 && name.contains(&wanted);
    let near = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, &wanted), *name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name);
    near.or_else(|| names.iter().find(has).copied())
}
