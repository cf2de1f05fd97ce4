//! Tests of the documentation's links: every link between its files leads to a file, and every anchor to a heading.
//! `scripts/docs` keeps the folders, so links that work here also work on the site.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_pages() -> BTreeMap<PathBuf, String> {
    let folders = ["", "docs", "docs/parameters", "bench"];
    let files = folders.iter().flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        entries.map(move |entry| Path::new(folder).join(entry.expect("an entry").file_name()))
    });
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "md"))
        .map(|file| {
            let text = fs::read_to_string(root().join(&file)).expect("a page");
            (file, text)
        })
        .collect()
}

/// Returns the lines outside of code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    page.split("```").step_by(2).flat_map(str::lines)
}

/// Returns the anchors of a page's headings, made as GitHub and mdBook make them.
fn anchors(page: &str) -> Vec<String> {
    let words = prose(page)
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase());
    words
        .map(|mut words| {
            words.retain(|letter| letter.is_alphanumeric() || " -_".contains(letter));
            words
        })
        .map(|anchor| anchor.replace(' ', "-"))
        .collect()
}

/// Returns the targets of a page's links, except those to other hosts.
fn links(page: &str) -> Vec<&str> {
    prose(page)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|link| link.split(')').next())
        .filter(|target| !target.contains("://"))
        .collect()
}

/// Returns a path without `..`.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => assert!(path.pop(), "a link out of the repository"),
            part => path.push(part),
        }
        path
    })
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = read_pages();
    let mut broken = Vec::new();
    for (file, text) in &pages {
        for link in links(text) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match target {
                "" => file.clone(),
                target => resolved(&file.with_file_name(target)),
            };
            let is_there = root().join(&target).exists();
            let has_anchor = anchor.is_empty()
                || (pages.get(&target))
                    .is_some_and(|page| anchors(page).iter().any(|name| name == anchor));
            if !is_there || !has_anchor {
                broken.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let pages = read_pages();
    let contents = &pages[Path::new("docs/SUMMARY.md")];
    let named: Vec<PathBuf> =
        links(contents).into_iter().map(|link| resolved(&Path::new("docs").join(link))).collect();
    let missing: Vec<&PathBuf> = pages
        .keys()
        .filter(|page| !named.contains(page) && !page.ends_with("SUMMARY.md"))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}
