//! nginx's configuration language, read the way nginx reads it (`ngx_conf_read_token` in
//! `src/core/ngx_conf_file.c`): words, quotes, comments and nested blocks.
//!
//! Used to read back what nginx itself prints with `-T`, so the text is known to be accepted by
//! nginx; errors here mean that this reader and nginx disagree. Blocks that hold another language
//! (Lua, njs) are not understood.

/// One directive: `name arguments;` or `name arguments { block }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// The first word.
    pub name: String,
    /// The words behind it, unquoted.
    pub arguments: Vec<String>,
    /// What is between the braces, when there are any.
    pub block: Option<Vec<Directive>>,
    /// Line of its name in the text, counted from 1.
    pub line: usize,
}

/// Where the text is not nginx's language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// Reads a configuration into its tree.
///
/// # Errors
/// Braces or quotes do not match, or a directive is not ended.
pub fn parse(text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        line: 1,
    };
    // The blocks that are open, outermost first: the directive that opened it, and its content.
    let mut open: Vec<Directive> = Vec::new();
    let mut content: Vec<Vec<Directive>> = vec![Vec::new()];
    let mut words: Vec<String> = Vec::new();
    let mut line = 1;
    while let Some(token) = reader.token()? {
        match token {
            Token::Word(word) => {
                if words.is_empty() {
                    line = reader.line;
                }
                words.push(word);
            }
            Token::End => {
                let directive = reader.directive(&mut words, line)?;
                reader.innermost(&mut content)?.push(directive);
            }
            Token::Open => {
                open.push(reader.directive(&mut words, line)?);
                content.push(Vec::new());
            }
            Token::Close if !words.is_empty() => {
                return Err(reader.error("a directive is not ended by `;`"));
            }
            Token::Close => {
                let Some(mut directive) = open.pop() else {
                    return Err(reader.error("there is a `}` too many"));
                };
                directive.block = content.pop();
                reader.innermost(&mut content)?.push(directive);
            }
        }
    }
    match (words.is_empty(), open.is_empty()) {
        (false, _) => Err(reader.error("a directive is not ended by `;`")),
        (true, false) => Err(reader.error("a `}` is missing")),
        (true, true) => Ok(content.swap_remove(0)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    End,
    Open,
    Close,
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn error(&self, what: &'static str) -> SyntaxError {
        SyntaxError {
            line: self.line,
            what,
        }
    }

    fn directive(&self, words: &mut Vec<String>, line: usize) -> Result<Directive, SyntaxError> {
        if words.is_empty() {
            return Err(self.error("a directive has no name"));
        }
        let mut words = std::mem::take(words).into_iter();
        Ok(Directive {
            name: words.next().unwrap_or_default(),
            arguments: words.collect(),
            block: None,
            line,
        })
    }

    fn innermost<'c>(
        &self,
        content: &'c mut [Vec<Directive>],
    ) -> Result<&'c mut Vec<Directive>, SyntaxError> {
        content
            .last_mut()
            .ok_or_else(|| self.error("there is a `}` too many"))
    }

    fn token(&mut self) -> Result<Option<Token>, SyntaxError> {
        loop {
            let Some(next) = self.next() else {
                return Ok(None);
            };
            return match next {
                c if c.is_ascii_whitespace() => continue,
                '#' => {
                    while self.next().is_some_and(|c| c != '\n') {}
                    continue;
                }
                ';' => Ok(Some(Token::End)),
                '{' => Ok(Some(Token::Open)),
                '}' => Ok(Some(Token::Close)),
                quote @ ('"' | '\'') => self.quoted(quote).map(|word| Some(Token::Word(word))),
                first => Ok(Some(Token::Word(self.bare(first)))),
            };
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let begin = self.error("a quote is not closed");
        let mut word = String::new();
        loop {
            match self.next() {
                None => return Err(begin),
                Some('\\') => self.escape(&mut word),
                Some(c) if c == quote => break,
                Some(c) => word.push(c),
            }
        }
        match self.rest.peek() {
            Some(c) if !c.is_ascii_whitespace() && !matches!(c, ';' | '{' | ')') => {
                Err(self.error("there is something right behind a closing quote"))
            }
            _ => Ok(word),
        }
    }

    /// A word without quotes: up to a blank, `;` or `{`, where `${` opens a variable's name and
    /// no block.
    fn bare(&mut self, first: char) -> String {
        let mut word = String::new();
        match first {
            '\\' => self.escape(&mut word),
            c => word.push(c),
        }
        let mut variable = first == '$';
        while let Some(&next) = self.rest.peek() {
            let ends = next.is_ascii_whitespace() || next == ';' || (next == '{' && !variable);
            if ends {
                break;
            }
            self.next();
            variable = next == '$';
            match next {
                '\\' => self.escape(&mut word),
                c => word.push(c),
            }
        }
        word
    }

    /// What follows a backslash. nginx keeps the backslash before what it does not know, since it
    /// may belong to a regular expression.
    fn escape(&mut self, word: &mut String) {
        match self.next() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn simple(name: &str, arguments: &[&str]) -> Directive {
        Directive {
            name: name.to_owned(),
            arguments: arguments.iter().map(|&a| a.to_owned()).collect(),
            block: None,
            line: 0,
        }
    }

    /// The same tree, wherever its directives stand.
    fn unplaced(tree: Vec<Directive>) -> Vec<Directive> {
        let unplaced_one = |directive: Directive| Directive {
            block: directive.block.map(unplaced),
            line: 0,
            ..directive
        };
        tree.into_iter().map(unplaced_one).collect()
    }

    #[test]
    fn words_quotes_comments_and_blocks_are_nginx_s() {
        let text = r#"
            # a comment with ; and { in it
            user  www-data;events{worker_connections 768;}
            http {
                log_format a '$remote_addr "$request" it\'s'
                             "two;{}" plain#not-a-comment; # but this is
                map $uri $x { default ""; ~^/\d+\.x$ "a\\b\tc"; }
                server { location ~ \.php$ { return 200 ${host}x; } }
            }
        "#;
        let tree = unplaced(parse(text).unwrap());
        let http = tree[2].block.as_ref().unwrap();
        assert_eq!(tree[0], simple("user", &["www-data"]));
        assert_eq!(
            tree[1].block,
            Some(vec![simple("worker_connections", &["768"])])
        );
        let log = simple(
            "log_format",
            &[
                "a",
                r#"$remote_addr "$request" it's"#,
                "two;{}",
                "plain#not-a-comment",
            ],
        );
        assert_eq!(http[0], log);
        let map = http[1].block.as_ref().unwrap();
        assert_eq!(map[0], simple("default", &[""]));
        assert_eq!(map[1], simple(r"~^/\d+\.x$", &["a\\b\tc"]));
        let location = &http[2].block.as_ref().unwrap()[0];
        assert_eq!(location.arguments, ["~", r"\.php$"]);
        assert_eq!(
            location.block,
            Some(vec![simple("return", &["200", "${host}x"])])
        );
    }

    #[test]
    fn a_directive_knows_its_line() {
        let tree = parse("a 1\n  2;\n\nb { # x\n c \"d\ne\"; f;\n}\ng;").unwrap();
        let lines: Vec<usize> = tree.iter().map(|directive| directive.line).collect();
        assert_eq!(lines, [1, 4, 8]);
        let inner = tree[1].block.as_ref().unwrap();
        assert_eq!((inner[0].line, inner[1].line), (5, 6));
    }

    #[test]
    fn what_nginx_would_refuse_is_refused_with_its_line() {
        for (text, line, what) in [
            ("a 1", 1, "a directive is not ended by `;`"),
            ("a;\nb {\n c 1 }", 3, "a directive is not ended by `;`"),
            ("a;\n}", 2, "there is a `}` too many"),
            ("a {\n b;\n", 3, "a `}` is missing"),
            (";", 1, "a directive has no name"),
            ("{ }", 1, "a directive has no name"),
            ("a;\nb \"x;\n\n", 2, "a quote is not closed"),
            (
                "a \"x\"y;",
                1,
                "there is something right behind a closing quote",
            ),
        ] {
            assert_eq!(parse(text), Err(SyntaxError { line, what }), "{text:?}");
        }
    }

    fn quote(word: &str) -> String {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    }

    fn render(tree: &[Directive]) -> String {
        let one = |directive: &Directive| {
            let words: Vec<String> = std::iter::once(&directive.name)
                .chain(&directive.arguments)
                .map(|word| quote(word))
                .collect();
            match &directive.block {
                Some(block) => format!("{} {{ # {{\n{}}}\n", words.join(" "), render(block)),
                None => format!("{};", words.join("\n")),
            }
        };
        tree.iter().map(one).collect()
    }

    fn any_directive() -> impl Strategy<Value = Directive> {
        let words = ("[a-z_]{1,6}", prop::collection::vec(any::<String>(), 0..3));
        let leaf = words.clone().prop_map(|(name, arguments)| Directive {
            name,
            arguments,
            block: None,
            line: 0,
        });
        leaf.prop_recursive(3, 24, 4, move |inner| {
            (words.clone(), prop::collection::vec(inner, 0..4)).prop_map(
                |((name, arguments), block)| Directive {
                    name,
                    arguments,
                    block: Some(block),
                    line: 0,
                },
            )
        })
    }

    proptest! {
        #[test]
        fn a_tree_that_is_written_reads_back(tree in prop::collection::vec(any_directive(), 0..4)) {
            prop_assert_eq!(parse(&render(&tree)).map(unplaced), Ok(tree));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[a{};\"'\\\\$# \n]{0,40}") {
            let _ = parse(&text);
        }
    }
}
