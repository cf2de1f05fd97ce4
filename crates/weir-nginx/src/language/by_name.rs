//! Chooses the server of a socket that answers a host: by `server_name` (the manual's "Server names").

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use weir_configuration::names::{is_found, wildcard};

use super::listen::{Listen, Socket};
use super::view::Node;

/// The server of a socket that has the host's name, or the default one; and true if it has the name.
type Choice<'a> = (Option<&'a Node<'a>>, bool);

/// Cache of servers by socket and host: files with thousands of servers look up the same ones again and again.
#[derive(Default)]
pub(super) struct ByName<'a>(RefCell<BTreeMap<(Socket, String), Choice<'a>>>);

impl<'a> ByName<'a> {
    /// Returns the server that a host's name chooses among `listens` at a socket.
    pub(super) fn server(&self, listens: &[Listen<'a>], socket: &Socket, name: &str) -> Choice<'a> {
        let key = (socket.clone(), name.to_owned());
        let mut choices = self.0.borrow_mut();
        *choices.entry(key).or_insert_with(|| choose(listens, socket, name))
    }
}

fn choose<'a>(listens: &[Listen<'a>], socket: &Socket, name: &str) -> Choice<'a> {
    let here: Vec<&Listen<'a>> = listens.iter().filter(|listen| listen.socket == *socket).collect();
    for fits in [exact, before, behind, expression] {
        if let Some(server) = first_of_longest(&here, name, fits) {
            return (Some(server), true);
        }
    }
    let default = here.iter().find(|listen| is_default(listen));
    (default.map(|listen| listen.server), false)
}

/// Function that returns the length of a server's name if it matches a host, to find the longest match; 0 if the length
/// does not matter.
type Fit = fn(&str, &str) -> Option<usize>;

fn first_of_longest<'a>(here: &[&Listen<'a>], host: &str, fits: Fit) -> Option<&'a Node<'a>> {
    here.iter()
        .enumerate()
        .flat_map(|(place, listen)| {
            names(listen.server)
                .into_iter()
                .filter_map(|name| fits(name, host))
                .map(move |length| (length, Reverse(place), listen.server))
        })
        .max_by_key(|(length, place, _)| (*length, *place))
        .map(|(.., server)| server)
}

fn exact(name: &str, host: &str) -> Option<usize> {
    let full_name = name.strip_prefix('.').unwrap_or(name);
    full_name.eq_ignore_ascii_case(host).then_some(0)
}

/// Matches `*.example.com`, and `.example.com`, which stands for that and `example.com`.
fn before(name: &str, host: &str) -> Option<usize> {
    if name.starts_with('.') {
        return wildcard(&format!("*{name}"), host);
    }
    name.starts_with("*.").then(|| wildcard(name, host)).flatten()
}

/// Matches `www.example.*`.
fn behind(name: &str, host: &str) -> Option<usize> {
    name.ends_with(".*").then(|| wildcard(name, host)).flatten()
}

fn expression(name: &str, host: &str) -> Option<usize> {
    let pattern = name.strip_prefix('~')?;
    is_found(pattern, true, host)?.then_some(0)
}

fn is_default(listen: &Listen<'_>) -> bool {
    let mut flags = listen.flags().iter();
    flags.any(|flag| flag.text == "default_server" || flag.text == "default")
}

/// Returns the names of a server; a server without names has the empty one.
pub(super) fn names<'a>(server: &'a Node<'_>) -> Vec<&'a str> {
    let names: Vec<&str> = server
        .simple()
        .filter(|node| node.directive.is("server_name"))
        .flat_map(|node| node.directive.words())
        .collect();
    if names.is_empty() { vec![""] } else { names }
}
