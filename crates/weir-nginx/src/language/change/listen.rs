//! Writes flags of listeners.

use std::collections::BTreeMap;

use weir_configuration::{ConfigurationError, Splice};

use super::{Planner, Writing};
use crate::language::listen::{self, Listen, Socket};
use crate::language::syntax::Word;
use crate::language::value::same_word;
use crate::language::view::error_at;

impl Planner<'_> {
    pub(super) fn put_on_listeners(
        &mut self,
        writing: &Writing<'_>,
    ) -> Result<(), ConfigurationError> {
        let nodes = self.nodes;
        let mut sockets: BTreeMap<Socket, Vec<Listen<'_>>> = BTreeMap::new();
        let all = listen::all(nodes).into_iter();
        for listen in all.filter(|listen| listen.is_http && !listen.socket.is_udp) {
            sockets.entry(listen.socket.clone()).or_default().push(listen);
        }
        if sockets.is_empty() && writing.text.is_some() {
            return Err(self.missing("an HTTP server that listens", writing));
        }
        for (socket, listens) in &sockets {
            let is_covered = sockets.keys().any(|other| socket.is_covered_by(other));
            self.put_on_socket(writing, listens, is_covered)?;
        }
        Ok(())
    }

    fn put_on_socket(
        &mut self,
        writing: &Writing<'_>,
        listens: &[Listen<'_>],
        is_covered: bool,
    ) -> Result<(), ConfigurationError> {
        let mut is_there = false;
        for listen in listens {
            for flag in listen.flags().iter().filter(|flag| is_flag(flag, writing)) {
                is_there = true;
                self.edit_flag(listen, flag, writing);
            }
        }
        let has_options = listens.iter().find(|listen| listen.sets_options());
        let no_reuse = listens[0].socket.is_unix() && writing.name == "reuseport";
        let is_shared = is_covered && has_options.is_none();
        let Some(text) = &writing.text else {
            return Ok(());
        };
        if is_there || no_reuse || is_shared {
            return Ok(());
        }
        let mut alone = listens.iter().filter(|listen| {
            // In a file that several servers include it would be an option of all of them.
            !listen.is_implicit
                && listens.iter().filter(|other| other.node.place() == listen.node.place()).count()
                    == 1
        });
        let Some(listen) = has_options.or_else(|| alone.next()) else {
            return Err(self.no_listen(writing, listens));
        };
        let last = listen.node.directive.arguments.last();
        let at = last.map_or(listen.node.directive.terminator, |word| word.span.end);
        self.edits.insert(Splice {
            file: listen.node.file,
            range: at..at,
            text: format!(" {}", text.whole),
        });
        Ok(())
    }

    fn no_listen(&self, writing: &Writing<'_>, listens: &[Listen<'_>]) -> ConfigurationError {
        let id = &writing.row.id;
        let explicit = listens.iter().find(|listen| !listen.is_implicit);
        let node = explicit.unwrap_or(&listens[0]).node;
        let (what, hint) = match explicit {
            None => (
                format!("`{id}` needs a `listen`, and this server has none"),
                "write `listen 80;`, which is what nginx does by itself",
            ),
            Some(_) => (
                format!("`{id}` needs a `listen` of one server, and several include this one"),
                "write it into the servers themselves: nginx takes options once for each address",
            ),
        };
        error_at(self.source, node.file, node.directive, what).hint(hint)
    }

    fn edit_flag(&mut self, listen: &Listen<'_>, flag: &Word, writing: &Writing<'_>) {
        let file = listen.node.file;
        let (range, text) = match &writing.text {
            Some(text) if same_word(&writing.row.level, &flag.text, &text.whole) => return,
            Some(text) => (flag.span.clone(), text.whole.clone()),
            None => {
                let before = &self.source.files[file].text[..flag.span.start];
                let begin = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
                (begin..flag.span.end, String::new())
            }
        };
        self.edits.change(Splice { file, range, text });
    }
}

fn is_flag(word: &Word, writing: &Writing<'_>) -> bool {
    word.text.split('=').next() == Some(&*writing.name)
}
