//! A checker of HTML that is strict about what matters: every element is closed correctly, ids are unique, references
//! have their target, and nothing is loaded from anywhere.

use std::collections::BTreeSet;

/// Elements without content (HTML Standard §13.1.2).
const VOID: [&str; 4] = ["meta", "br", "link", "img"];

/// A start tag: its name and its attributes, values as written.
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Tag {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find(|(key, _)| key == name).map(|(_, v)| v.as_str())
    }
}

/// Checks nesting and returns all start tags. Panics with the position of the first fault.
pub(crate) fn check(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut tail = html.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    while let Some(start) = tail.find('<') {
        assert!(!tail[..start].contains('>'), "stray > in {}", around(tail));
        tail = &tail[start + 1..];
        let end = end_of_tag(tail);
        let inside = &tail[..end];
        tail = &tail[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            let expected = open.pop();
            assert_eq!(expected.as_deref(), Some(name), "before {}", around(tail));
            continue;
        }
        let (inside, closed) = match inside.strip_suffix('/') {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let tag = parse_tag(inside);
        // Raw text elements end at their own end tag only.
        if tag.name == "style" || tag.name == "script" {
            let close = format!("</{}>", tag.name);
            let at = tail.find(&close).expect("raw text is closed");
            assert!(!tail[..at].contains("</"), "markup in {}", tag.name);
            tail = &tail[at + close.len()..];
        } else if !closed && !VOID.contains(&tag.name.as_str()) {
            open.push(tag.name.clone());
        }
        tags.push(tag);
    }
    assert!(open.is_empty(), "never closed: {open:?}");
    references(&tags);
    tags
}

/// Returns the end of a tag, which is the first `>` outside quotes.
fn end_of_tag(text: &str) -> usize {
    let mut quoted = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return index,
            b'<' => panic!("a tag within a tag: {}", around(text)),
            _ => {}
        }
    }
    panic!("a tag that never ends: {}", around(text));
}

fn parse_tag(text: &str) -> Tag {
    let (name, mut rest) = text.split_once([' ', '\n']).unwrap_or((text, ""));
    let is_element = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
    assert!(is_element, "not an element: {text}");
    let mut attributes = Vec::new();
    while !rest.trim().is_empty() {
        let (key, after) = rest.trim_start().split_once("=\"").expect("quoted values");
        let (value, after) = after.split_once('"').expect("closed quotes");
        let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "-:".contains(c));
        assert!(is_plain, "not an attribute: {key} in {text}");
        attributes.push((key.to_owned(), value.to_owned()));
        rest = after;
    }
    Tag { name: name.to_owned(), attributes }
}

fn references(tags: &[Tag]) {
    let mut ids = BTreeSet::new();
    for id in tags.iter().filter_map(|tag| tag.get("id")) {
        assert!(ids.insert(id), "id {id} is there twice");
    }
    for tag in tags {
        let labels = tag.get("aria-labelledby").unwrap_or("");
        for id in labels.split_whitespace() {
            assert!(ids.contains(id), "nothing has the id {id}");
        }
        if let Some(target) = tag.get("href") {
            let id = target.strip_prefix('#').expect("links stay in the page");
            assert!(ids.contains(id), "nothing has the id {id}");
        }
        for loads in ["src", "srcset", "data", "poster", "action"] {
            assert!(tag.get(loads).is_none(), "{} loads something", tag.name);
        }
        assert_ne!(tag.name, "link", "a link element loads something");
    }
}

/// Asserts that an output contains all of these words.
#[track_caller]
pub(crate) fn has_all(output: &str, all: &[&str]) {
    for words in all {
        assert!(output.contains(words), "{words} is not in\n{output}");
    }
}

/// Asserts that an output contains none of these words.
#[track_caller]
pub(crate) fn has_none(output: &str, all: &[&str]) {
    for words in all {
        assert!(!output.contains(words), "{words} is in\n{output}");
    }
}

/// Joins the lines of an output.
pub(crate) fn flat(output: &str) -> String {
    let words: Vec<&str> = output.split_whitespace().collect();
    words.join(" ")
}

/// Writes a page to the target folder for inspection.
pub(crate) fn keep(name: &str, page: &str) {
    std::fs::write(format!("{}/{name}", env!("CARGO_TARGET_TMPDIR")), page).unwrap();
}

fn around(text: &str) -> String {
    text.chars().take(80).collect()
}

fn page(body: &str) -> String {
    format!("<!DOCTYPE html><html>{body}</html>")
}

#[test]
fn the_checker_finds_faults() {
    assert_eq!(check(&page("<p id=\"a\">x<br></p>")).len(), 3);
    #[rustfmt::skip]
    let faults = [
        "<p>x", "<p><b>x</p></b>", "<p id=\"a\"></p><p id=\"a\"></p>",
        "<a href=\"https://example.org/\"></a>", "<a href=\"#none\"></a>", "<img src=\"x\">",
        "a > b", "<p class=x></p>",
    ];
    for fault in faults {
        let html = page(fault);
        let is_found = std::panic::catch_unwind(|| check(&html)).is_err();
        assert!(is_found, "{fault} should be found");
    }
}
