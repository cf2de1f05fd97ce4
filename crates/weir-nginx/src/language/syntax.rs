//! Parser of nginx's configuration language without loss, in the same way as nginx (`ngx_conf_read_token` in
//! `src/core/ngx_conf_file.c`): words, quotes, comments and nested blocks, each with its byte range.
//!
//! Blocks in another language are recognised: those of Lua end where OpenResty ends them, and those of entries (`map`,
//! `types`, …) have first words that are no names of directives. A byte order mark is left out of the first word,
//! although nginx itself takes it for a part of it.

use std::ops::Range;

use super::lua;

/// Maximum depth of nested blocks: more than anybody needs, few enough for recursion.
const DEPTH_LIMIT: usize = 100;

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Directives outside of every block, in order.
    pub directives: Vec<Directive>,
    /// Byte range of every comment, from its `#` to before the line's end.
    pub comments: Vec<Range<usize>>,
}

/// One directive: `name arguments;` or `name arguments { block }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// First word of the directive.
    pub name: Word,
    /// Further words.
    pub arguments: Vec<Word>,
    /// Byte offset of the `;` or `{` that ends the words.
    pub terminator: usize,
    /// Block of the directive, if it has one.
    pub block: Option<Block>,
    /// Line of the directive's name, counted from 1.
    pub line: usize,
}

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Meaning of the word: without quotes and escapes.
    pub text: String,
    /// Byte range of the word, with quotes.
    pub span: Range<usize>,
}

/// The part between two braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Language of the block.
    pub language: Language,
    /// Directives or entries of the block; empty for Lua.
    pub directives: Vec<Directive>,
    /// Byte offset of the `{`.
    pub open: usize,
    /// Byte offset of the `}`.
    pub close: usize,
}

/// Language of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// nginx's directives.
    Directives,
    /// Entries in the form of directives, as in `map`; only `include` is a directive.
    Entries,
    /// Lua code.
    Lua,
}

impl Language {
    /// Returns the language of the block behind a directive.
    fn of(name: &str) -> Language {
        match name {
            "map" | "geo" | "types" | "split_clients" | "charset_map" | "geoip2" => {
                Language::Entries
            }
            name if name.ends_with("_by_lua_block") => Language::Lua,
            _ => Language::Directives,
        }
    }
}

impl Directive {
    /// Returns the byte range of the whole directive, from the name to the `;` or `}`.
    pub fn span(&self) -> Range<usize> {
        let last = self.block.as_ref().map_or(self.terminator, |it| it.close);
        self.name.span.start..last + 1
    }

    /// Returns true if the directive has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name.text == name
    }

    /// Returns the meaning of an argument, counted from 0.
    pub fn argument(&self, index: usize) -> Option<&str> {
        self.arguments.get(index).map(|word| &*word.text)
    }

    /// Returns the meanings of all arguments.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(|word| &*word.text)
    }

    /// Returns the directives of the block; empty if there is no block or it has none.
    pub fn children(&self) -> &[Directive] {
        self.block.as_ref().map_or(&[], |block| &block.directives)
    }
}

/// Error for a text that is not in nginx's language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Byte offset in the text.
    pub at: usize,
    /// Line, counted from 1.
    pub line: usize,
    /// Description of the error.
    pub what: &'static str,
}

/// Parses a text.
///
/// # Errors
/// Returns an error if braces or quotes do not match, if a directive is not ended, or if blocks are nested deeper than
/// 100.
pub fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        open: Vec::new(),
        content: Vec::new(),
        words: Vec::new(),
        line: 1,
    };
    while let Some(token) = parser.lexer.token()? {
        parser.take(token)?;
    }
    parser.finish()
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Open blocks, outermost first: the directive that opened the block, and the directives before it.
    open: Vec<(Directive, Vec<Directive>)>,
    /// Directives so far in the innermost open block.
    content: Vec<Directive>,
    words: Vec<Word>,
    /// Line of the first word.
    line: usize,
}

impl Parser<'_> {
    fn take(&mut self, token: Token) -> Result<(), SyntaxError> {
        match token {
            Token::Word(word, line) => {
                if self.words.is_empty() {
                    self.line = line;
                }
                self.words.push(word);
            }
            Token::End(at) => {
                let directive = self.directive(at)?;
                self.content.push(directive);
            }
            Token::Open(at) => self.open(at)?,
            Token::Close(at) => self.close(at)?,
        }
        Ok(())
    }

    fn directive(&mut self, terminator: usize) -> Result<Directive, SyntaxError> {
        let mut words = std::mem::take(&mut self.words).into_iter();
        let Some(name) = words.next() else {
            return Err(self.lexer.error(terminator, "a directive has no name"));
        };
        Ok(Directive { name, arguments: words.collect(), terminator, block: None, line: self.line })
    }

    fn open(&mut self, at: usize) -> Result<(), SyntaxError> {
        if self.open.len() == DEPTH_LIMIT {
            return Err(self.lexer.error(at, "blocks are nested deeper than 100"));
        }
        let mut directive = self.directive(at)?;
        let language = Language::of(&directive.name.text);
        let mut block = Block { language, directives: Vec::new(), open: at, close: at };
        if language == Language::Lua {
            block.close = self.lexer.skip_lua(at)?;
            directive.block = Some(block);
            self.content.push(directive);
        } else {
            directive.block = Some(block);
            let before = std::mem::take(&mut self.content);
            self.open.push((directive, before));
        }
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.ended()?;
        let Some((mut directive, before)) = self.open.pop() else {
            return Err(self.lexer.error(at, "there is a `}` too many"));
        };
        let content = std::mem::replace(&mut self.content, before);
        if let Some(block) = &mut directive.block {
            block.directives = content;
            block.close = at;
        }
        self.content.push(directive);
        Ok(())
    }

    fn ended(&self) -> Result<(), SyntaxError> {
        match self.words.first() {
            None => Ok(()),
            Some(name) => Err(SyntaxError {
                at: name.span.start,
                line: self.line,
                what: "a directive is not ended by `;`",
            }),
        }
    }

    fn finish(self) -> Result<Tree, SyntaxError> {
        self.ended()?;
        match self.open.last() {
            Some((directive, _)) => Err(SyntaxError {
                at: directive.terminator,
                line: self.lexer.line_of(directive.terminator),
                what: "the `}` of this block is missing",
            }),
            None => Ok(Tree { directives: self.content, comments: self.lexer.comments }),
        }
    }
}

#[derive(Debug)]
enum Token {
    /// A word, with its line.
    Word(Word, usize),
    End(usize),
    Open(usize),
    Close(usize),
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    comments: Vec<Range<usize>>,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            line: 1,
            comments: Vec::new(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn advance(&mut self) {
        self.line += usize::from(self.peek() == Some(b'\n'));
        self.at = (self.at + 1).min(self.text.len());
    }

    fn error(&self, at: usize, what: &'static str) -> SyntaxError {
        let line = self.line_of(at);
        SyntaxError { at, line, what }
    }

    fn line_of(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    fn token(&mut self) -> Result<Option<Token>, SyntaxError> {
        while let Some(byte) = self.peek() {
            let at = self.at;
            let token = match byte {
                byte if is_blank(byte) => {
                    self.advance();
                    continue;
                }
                b'#' => {
                    self.comment();
                    continue;
                }
                b';' => Token::End(at),
                b'{' => Token::Open(at),
                b'}' => Token::Close(at),
                b'"' | b'\'' => return self.quoted(byte).map(Some),
                _ => return Ok(Some(self.bare())),
            };
            self.advance();
            return Ok(Some(token));
        }
        Ok(None)
    }

    fn comment(&mut self) {
        let tail = &self.text[self.at..];
        let line = tail.split('\n').next().unwrap_or_default();
        let end = self.at + line.len();
        self.comments.push(self.at..self.at + line.trim_end_matches('\r').len());
        self.at = end;
    }

    fn quoted(&mut self, quote: u8) -> Result<Token, SyntaxError> {
        let (begin, line) = (self.at, self.line);
        self.advance();
        loop {
            match self.peek() {
                None => return Err(self.error(begin, "a quote is not closed")),
                Some(b'\\') => self.advance(),
                Some(byte) if byte == quote => break,
                Some(_) => {}
            }
            self.advance();
        }
        self.advance();
        let word =
            Word { text: unescape(&self.text[begin + 1..self.at - 1]), span: begin..self.at };
        match self.peek() {
            Some(byte) if !is_blank(byte) && !matches!(byte, b';' | b'{' | b')') => {
                Err(self.error(self.at, "there is something right behind a closing quote"))
            }
            _ => Ok(Token::Word(word, line)),
        }
    }

    /// Reads a word without quotes: up to a blank, `;` or `{`. `${` opens a variable's name and no block.
    fn bare(&mut self) -> Token {
        let (begin, line) = (self.at, self.line);
        let mut in_variable = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'{' if in_variable => {}
                b';' | b'{' => break,
                byte if is_blank(byte) => break,
                b'\\' => {
                    in_variable = false;
                    self.advance();
                }
                byte => in_variable = byte == b'$',
            }
            self.advance();
        }
        let word = Word { text: unescape(&self.text[begin..self.at]), span: begin..self.at };
        Token::Word(word, line)
    }

    /// Skips a block of Lua, and returns the byte offset of its `}`.
    fn skip_lua(&mut self, open: usize) -> Result<usize, SyntaxError> {
        let Some(close) = lua::block_end(self.text, open + 1) else {
            return Err(self.error(open, "the `}` of this block of Lua is missing"));
        };
        let code = &self.text.as_bytes()[open..close];
        self.line += code.iter().filter(|&&byte| byte == b'\n').count();
        self.at = close + 1;
        Ok(close)
    }
}

/// Returns the meaning of a word's bytes. nginx keeps the backslash of an unknown sequence, since that may belong to a
/// regular expression.
fn unescape(raw: &str) -> String {
    if !raw.contains('\\') {
        return raw.to_owned();
    }
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match characters.next() {
            Some(c @ ('"' | '\'' | '\\')) => text.push(c),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('n') => text.push('\n'),
            Some(c) => text.extend(['\\', c]),
            None => text.push('\\'),
        }
    }
    text
}

/// Returns a word as it has to be written, in quotes if it needs them.
pub(super) fn quoted(word: &str) -> String {
    const SPECIAL: [char; 5] = [';', '{', '}', '"', '\''];
    let is_plain = !word.is_empty() && !word.starts_with('#') && !word.contains('\\');
    if is_plain && !word.contains(|c: char| c.is_ascii_whitespace() || SPECIAL.contains(&c)) {
        word.to_owned()
    } else {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
