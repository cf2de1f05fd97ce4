//! Looks up the part of a document that answers a request at one of its listeners.

use serde_json::Value as Json;

use super::listening::Listening;
use super::pointer::Pointer;
use super::tree::Tree;
use super::walk::span_of;
use crate::answer::Answer;
use crate::asked::{Candidates, ListenerCandidate, Map, Missing, Request, Route, Spot};
use crate::place::line_and_column;
use crate::{Listener, Source};

/// A parsed document: its file, its text as a tree, and its value.
pub type Parts<'a> = (&'a Source, &'a Tree, &'a Json);

/// Function of a dialect that finds the way of a request coming in at a listener.
type FindRoute = fn(&Document<'_>, usize, &Request<'_>) -> Route;

/// A document prepared for looking up the ways of requests.
pub struct Document<'a> {
    tree: &'a Tree,
    pub json: &'a Json,
    pub found: Vec<Listening>,
    pub candidates: Candidates<'a>,
    find_route: FindRoute,
}

impl<'a> Document<'a> {
    pub fn new(
        (source, tree, json): Parts<'a>,
        found: Vec<Listening>,
        missing: Missing,
        find_route: FindRoute,
    ) -> Document<'a> {
        let file = &source.files[0];
        let candidates = found.iter().enumerate().map(|(index, listening)| {
            let at = span_of(file, tree, &listening.at).start;
            ListenerCandidate {
                listener: Listener {
                    file: file.path.clone(),
                    line: line_and_column(&file.text, at).0,
                    address: listening.address.clone(),
                    port: listening.port,
                    tls: listening.tls,
                },
                at: (0, at),
                last_port: None,
                group: found
                    .iter()
                    .position(|other| other.server == listening.server)
                    .unwrap_or(index),
                first: index,
                is_udp: listening.udp,
                is_either: false,
                is_inner: false,
            }
        });
        let all = candidates.collect();
        let candidates = Candidates { source, all, missing };
        Document { tree, json, candidates, found, find_route }
    }

    /// Returns the position of a value: index of the file, and byte offset in its text.
    pub fn place(&self, at: &Pointer) -> (usize, usize) {
        let file = &self.candidates.source.files[0];
        (0, span_of(file, self.tree, at).start)
    }

    /// Returns a value as a named part with its position.
    pub fn spot(&self, at: &Pointer, name: impl Into<String>) -> Spot {
        let source = self.candidates.source;
        let span = span_of(&source.files[0], self.tree, at);
        Spot { pointer: at.to_string(), ..Spot::new(source, 0, span, name.into()) }
    }
}

impl Map for Document<'_> {
    fn candidates(&self) -> &Candidates<'_> {
        &self.candidates
    }

    fn find_route(&self, candidate: usize, request: &Request<'_>) -> Route {
        (self.find_route)(self, candidate, request)
    }
}

/// Returns the answer for a status in a document: a number, or a text with a number. A missing status counts as
/// `otherwise`.
pub fn of_status(status: Option<&Json>, otherwise: u16) -> Answer {
    let number = match status {
        Some(Json::String(text)) => text.parse().ok(),
        Some(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        None => Some(otherwise),
    };
    number.map_or(Answer::Unknown, Answer::of_status)
}
