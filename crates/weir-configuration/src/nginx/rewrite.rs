//! What the directives of ngx_http_rewrite_module, `try_files` and `index` make of a request before a location
//! answers it, as far as the request alone decides it.

use super::view::Node;
use crate::answer::Answer;
use crate::asked::Request;
use crate::names::{captures, is_found};

/// A request on its way through a server.
pub(super) struct Passage<'a> {
    pub(super) request: &'a Request<'a>,
    /// The port of its listener, where that has one.
    pub(super) port: Option<u16>,
    /// Its path, with all that changed it on the way.
    pub(super) path: String,
}

/// What ends the directives of the rewrite module in a block.
pub(super) enum End {
    Answer(Answer),
    /// The block goes on with the request, whatever its path is now.
    Break,
    /// Another location is looked for.
    Last,
}

/// Where `try_files` goes when no file is there.
pub(super) enum Fallback<'n> {
    Named(&'n str),
    Path(String),
}

impl Passage<'_> {
    /// Follows the directives of the rewrite module in a block; `None`: to its end.
    pub(super) fn rewritten(&mut self, block: &Node<'_>) -> Option<End> {
        for node in &block.children {
            let end = match &*node.directive.name.text {
                "return" => Some(End::Answer(returned(node))),
                "break" => Some(End::Break),
                "rewrite" => self.rewrite(node),
                "if" if self.is_true(node) == Some(true) => self.rewritten(node),
                _ => None,
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }

    fn rewrite(&mut self, node: &Node<'_>) -> Option<End> {
        let [pattern, goes, flag] = [0, 1, 2].map(|at| node.directive.argument(at));
        let (pattern, goes) = (pattern?, goes?);
        let flag = flag.unwrap_or_default();
        if is_found(pattern, false, &self.path) != Some(true) {
            return None;
        }
        let schemes = ["http://", "https://", "$scheme"];
        if schemes.iter().any(|scheme| goes.starts_with(scheme))
            || matches!(flag, "redirect" | "permanent")
        {
            return Some(End::Answer(Answer::Redirects));
        }
        let path = captures(pattern, &self.path).unwrap_or_default();
        match (self.filled_in(goes, &path), flag) {
            (Some(path), _) => self.path = path,
            (None, "break") => {}
            (None, _) => return Some(End::Answer(Answer::Unknown)),
        }
        match flag {
            "last" => Some(End::Last),
            "break" => Some(End::Break),
            _ => None,
        }
    }

    /// Where a block goes with a request for which it finds no file.
    pub(super) fn fallback<'n>(&self, block: &'n Node<'_>) -> Option<Fallback<'n>> {
        let last = last_word(block, "try_files")?;
        match last.starts_with('@') {
            true => Some(Fallback::Named(last)),
            false => self.at_root(last).map(Fallback::Path),
        }
    }

    /// Where a request for a folder goes that has none of the files of `index`.
    pub(super) fn index(&self, location: Option<&Node<'_>>, server: &Node<'_>) -> Option<String> {
        let of_location = location.and_then(|node| last_word(node, "index"));
        let last = of_location.or_else(|| last_word(server, "index"))?;
        self.at_root(last).filter(|_| self.path.ends_with('/'))
    }

    fn at_root(&self, text: &str) -> Option<String> {
        self.filled_in(text, &[]).filter(|_| text.starts_with('/'))
    }

    /// A text with what its variables hold, up to its query; `None`: one is not known.
    fn filled_in(&self, text: &str, captures: &[String]) -> Option<String> {
        let mut pieces = text.split('?').next()?.split('$');
        let mut path = pieces.next()?.to_owned();
        for piece in pieces {
            let (name, rest) = match piece.strip_prefix('{') {
                Some(inner) => inner.split_once('}')?,
                None if piece.starts_with(|c: char| c.is_ascii_digit()) => piece.split_at(1),
                None => {
                    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let end = piece.find(|c| !is_of_name(c)).unwrap_or(piece.len());
                    piece.split_at(end)
                }
            };
            match name.parse::<usize>() {
                Ok(number) => path += captures.get(number)?,
                Err(_) => path += &self.variable(name)?,
            }
            path += rest;
        }
        Some(path.split('?').next().unwrap_or_default().to_owned())
    }

    /// What a variable holds; `None`: more than the request decides it.
    fn variable(&self, name: &str) -> Option<String> {
        let request = self.request;
        let query = request.query();
        let text: &str = match name {
            "host" | "http_host" => request.host,
            "scheme" if request.is_tls() => "https",
            "scheme" => "http",
            "https" if request.is_tls() => "on",
            "https" => "",
            "ssl_protocol" | "ssl_cipher" if !request.is_tls() => "",
            "ssl_client_verify" if !request.is_certified => "NONE",
            "uri" | "document_uri" => &self.path,
            "request_uri" => request.target,
            "request_method" => request.method,
            "args" | "query_string" => query,
            "is_args" if query.is_empty() => "",
            "is_args" => "?",
            "server_port" => return self.port.map(|port| port.to_string()),
            // Of one cookie or argument only where there is none at all.
            name if name.starts_with("cookie_") => {
                request.field("cookie").filter(|it| it.is_empty())?
            }
            name if name.starts_with("arg_") && query.is_empty() => "",
            name => request.field(&name.strip_prefix("http_")?.replace('_', "-"))?,
        };
        Some(text.to_owned())
    }

    /// Whether an `if` is entered.
    fn is_true(&self, node: &Node<'_>) -> Option<bool> {
        let words: Vec<&str> = node.directive.words().collect();
        let condition = words.join(" ");
        let condition = condition
            .trim()
            .strip_prefix('(')?
            .strip_suffix(')')?
            .trim();
        let (variable, rest) = match condition.split_once(char::is_whitespace) {
            Some((variable, rest)) => (variable, rest.trim()),
            None => (condition, ""),
        };
        let value = self.variable(variable.strip_prefix('$')?)?;
        let (sign, word) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let word = word.trim();
        match sign {
            "" => Some(!value.is_empty() && value != "0"),
            "=" => Some(value == word),
            "!=" => Some(value != word),
            "~" => is_found(word, false, &value),
            "~*" => is_found(word, true, &value),
            "!~" => is_found(word, false, &value).map(|found| !found),
            "!~*" => is_found(word, true, &value).map(|found| !found),
            _ => None,
        }
    }
}

fn returned(node: &Node<'_>) -> Answer {
    let first = node.directive.argument(0).unwrap_or_default();
    // A URL alone is 302.
    first.parse().map_or(Answer::Redirects, Answer::of_status)
}

/// The last word of a directive that stands in a block.
fn last_word<'n>(block: &'n Node<'_>, name: &str) -> Option<&'n str> {
    let mut simple = block.simple();
    simple
        .find(|node| node.directive.is(name))?
        .directive
        .words()
        .last()
}
