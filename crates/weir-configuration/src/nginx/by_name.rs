//! Which of the servers of a socket answers a host: by `server_name` (the manual's "Server names").

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::listen::{Listen, Socket};
use super::view::Node;
use crate::names::{is_found, wildcard};

/// A server of a socket, if one has the host's name or is its default, and whether it has the name.
type Choice<'a> = (Option<&'a Node<'a>>, bool);

/// Servers by socket and host, as far as they were looked up: files with thousands of servers ask for the same ones again
/// and again.
#[derive(Default)]
pub(super) struct ByName<'a>(RefCell<BTreeMap<(Socket, String), Choice<'a>>>);

impl<'a> ByName<'a> {
    /// The server that a host's name chooses among `listens` at a socket.
    pub(super) fn server(&self, listens: &[Listen<'a>], socket: &Socket, name: &str) -> Choice<'a> {
        let key = (socket.clone(), name.to_owned());
        let mut known = self.0.borrow_mut();
        *known
            .entry(key)
            .or_insert_with(|| choose(listens, socket, name))
    }
}

fn choose<'a>(listens: &[Listen<'a>], socket: &Socket, name: &str) -> Choice<'a> {
    let here = || listens.iter().filter(|listen| listen.socket == *socket);
    let named = |fits: &dyn Fn(&str) -> Option<usize>| {
        let ranked = here().enumerate().flat_map(|(place, listen)| {
            let lengths = names(listen.server).into_iter().filter_map(fits);
            lengths.map(move |length| (length, Reverse(place), listen.server))
        });
        // The longest, and of those the first.
        ranked
            .max_by_key(|(length, place, _)| (*length, *place))
            .map(|(.., server)| server)
    };
    let exact = |own: &str| {
        let own = own.strip_prefix('.').unwrap_or(own);
        own.eq_ignore_ascii_case(name).then_some(0)
    };
    let before = |own: &str| match own.strip_prefix('.') {
        Some(_) => wildcard(&format!("*{own}"), name),
        None => own.starts_with("*.").then(|| wildcard(own, name)).flatten(),
    };
    let behind = |own: &str| own.ends_with(".*").then(|| wildcard(own, name)).flatten();
    let expression = |own: &str| {
        let pattern = own.strip_prefix('~')?;
        is_found(pattern, true, name)?.then_some(0)
    };
    let found = named(&exact)
        .or_else(|| named(&before))
        .or_else(|| named(&behind))
        .or_else(|| named(&expression));
    if found.is_some() {
        return (found, true);
    }
    let is_default = |listen: &&Listen<'_>| {
        let mut flags = listen.flags().iter();
        flags.any(|flag| flag.text == "default_server" || flag.text == "default")
    };
    (here().find(is_default).map(|listen| listen.server), false)
}

/// The names of a server; one that says none has the empty one.
pub(super) fn names<'a>(server: &'a Node<'_>) -> Vec<&'a str> {
    let lines = server
        .simple()
        .filter(|node| node.directive.is("server_name"));
    let names: Vec<&str> = lines.flat_map(|node| node.directive.words()).collect();
    match names.is_empty() {
        true => vec![""],
        false => names,
    }
}
