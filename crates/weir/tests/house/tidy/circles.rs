//! Files of a crate that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::text::{closed, parts, places, word};

/// The files of a crate by their modules, and the modules that each imports, by the names used.
#[derive(Default)]
struct House<'s> {
    files: BTreeMap<Vec<&'s str>, &'s Source>,
    imported: BTreeMap<Vec<&'s str>, BTreeMap<&'s str, Vec<&'s str>>>,
}

/// Returns all circles of two files and more, by their files' paths. Tests do not count.
pub(super) fn find_circles(sources: &[Source]) -> Vec<Vec<&str>> {
    let mut houses: BTreeMap<&str, House<'_>> = BTreeMap::new();
    for source in sources {
        let Some((name, module)) = source.path.split_once("/src/") else {
            continue;
        };
        let mut module: Vec<&str> = module.trim_end_matches(".rs").split('/').collect();
        if module.contains(&"tests") {
            continue;
        }
        if ["lib", "main", "mod"].contains(module.last().expect("a name")) {
            module.pop();
        }
        houses.entry(name).or_default().files.insert(module, source);
    }
    houses.into_values().flat_map(House::knotted).collect()
}

impl<'s> House<'s> {
    fn knotted(mut self) -> Vec<Vec<&'s str>> {
        let paths: Vec<_> =
            self.files.iter().map(|(at, one)| (at.clone(), parse_paths(&one.code))).collect();
        for (module, paths) in &paths {
            let names = paths
                .iter()
                .filter(|path| path.inside.is_empty() && path.is_use)
                .filter_map(|path| Some((path.name?, path.segments.clone())));
            self.imported.insert(module.clone(), names.collect());
        }
        let mut arrows: BTreeMap<&'s str, BTreeSet<&'s str>> = BTreeMap::new();
        for (module, paths) in &paths {
            let to = arrows.entry(&self.files[module].path).or_default();
            // A module may use those below it, which are its parts, and hand on what they have.
            for path in paths {
                if !path.is_handed_on && matches!(path.segments[..], ["crate" | "super", ..]) {
                    let from = [&module[..], &path.inside].concat();
                    to.extend(self.target(from, &path.segments, 0));
                }
            }
        }
        let all: BTreeMap<&str, _> =
            arrows.keys().map(|file| (*file, reach(&arrows, file))).collect();
        let circles: BTreeSet<_> = all
            .iter()
            .map(|(file, reached)| {
                reached.iter().filter(|to| all[*to].contains(file)).copied().collect::<Vec<_>>()
            })
            .filter(|all| all.len() > 1)
            .collect();
        circles.into_iter().collect()
    }

    /// Returns the file that a path leads to, from a module; `None` for a path that begins with none of the modules
    /// there: it is a name of another crate's, or of the file's own.
    fn target(&self, mut at: Vec<&'s str>, segments: &[&'s str], depth: usize) -> Option<&'s str> {
        for (number, segment) in segments.iter().enumerate() {
            let below = [&at[..], &[segment]].concat();
            match *segment {
                "crate" => at.clear(),
                "super" => at.truncate(at.len().saturating_sub(1)),
                "self" => {}
                _ if self.files.contains_key(&below) => at = below,
                name => {
                    let path = self.imported.get(&at).and_then(|names| names.get(name));
                    match path {
                        // What it imports may in turn be imported.
                        Some(path) if number > 0 && depth < 8 => {
                            return self.target(at, path, depth + 1);
                        }
                        _ if number == 0 => return None,
                        _ => break,
                    }
                }
            }
        }
        self.files.get(&at).map(|source| &*source.path)
    }
}

/// Returns the files to which arrows lead from a file, over any number of others.
fn reach<'s>(arrows: &BTreeMap<&'s str, BTreeSet<&'s str>>, from: &'s str) -> BTreeSet<&'s str> {
    let (mut reached, mut pending) = (BTreeSet::new(), vec![from]);
    while let Some(file) = pending.pop() {
        pending.extend(arrows[file].iter().filter(|to| reached.insert(**to)));
    }
    reached
}

/// A path somewhere in a file.
struct Import<'c> {
    /// Modules within the file that contain the path.
    inside: Vec<&'c str>,
    segments: Vec<&'c str>,
    /// Name of the import in this file: its last segment, or the name after `as`.
    name: Option<&'c str>,
    is_use: bool,
    is_handed_on: bool,
}

/// Returns all paths of a file that may lead to another one.
fn parse_paths(code: &str) -> Vec<Import<'_>> {
    let inner = places(code, "mod").filter_map(|at| {
        let name = word(code[at + "mod".len()..].trim_start());
        let begin = at + code[at..].find(['{', ';'])?;
        let is_here = code.as_bytes()[begin] == b'{';
        is_here.then(|| (begin..begin + closed(&code[begin..]), name))
    });
    let inner: Vec<_> = inner.collect();
    // Where each path begins, and whether it is imported and handed on.
    let mut begins = Vec::new();
    let mut uses = Vec::new();
    for at in places(code, "use") {
        let is_handed_on = code[..at].trim_end().ends_with([')', 'b']);
        begins.push((at + "use".len(), true, is_handed_on));
        uses.push(at..at + code[at..].find(';').unwrap_or(0));
    }
    for (at, _) in code.match_indices("::") {
        let begin = code[..at]
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |before| before + 1);
        let is_in_use = uses.iter().any(|range| range.contains(&at));
        if !code[..begin].ends_with(':') && begin < at && !is_in_use {
            begins.push((begin, false, false));
        }
    }
    let mut all = Vec::new();
    for (at, is_use, is_handed_on) in begins {
        let inside: Vec<&str> =
            inner.iter().filter(|(range, _)| range.contains(&at)).map(|(_, name)| *name).collect();
        if !inside.contains(&"tests") {
            all.extend(parse_branches(&code[at..], &[]).into_iter().map(|(segments, name)| {
                Import { inside: inside.clone(), segments, name, is_use, is_handed_on }
            }));
        }
    }
    all
}

/// Returns the paths of a tree such as `a::{b, c::D as E}`, each with its name here.
fn parse_branches<'c>(tree: &'c str, before: &[&'c str]) -> Vec<(Vec<&'c str>, Option<&'c str>)> {
    let mut segments = before.to_vec();
    let mut tail = tree.trim_start();
    loop {
        if tail.starts_with('{') {
            let list = parts(&tail[1..closed(tail) - 1]).into_iter();
            return list.flat_map(|branch| parse_branches(branch, &segments)).collect();
        }
        let segment = word(tail);
        if segment.is_empty() {
            return vec![(segments, None)];
        }
        segments.push(segment);
        tail = &tail[segment.len()..];
        match tail.strip_prefix("::") {
            Some(more) => tail = more,
            None => break,
        }
    }
    let name = tail
        .trim_start()
        .strip_prefix("as ")
        .map(word)
        .or(segments.last().copied().filter(|name| *name != "self"))
        .or_else(|| before.last().copied());
    vec![(segments, name)]
}
