//! Words, quotes and blocks are read as nginx reads them.

use weir_nginx::language::{Plain, directives};

fn plain(line: usize, words: &[&str]) -> Plain {
    let mut owned = words.iter().map(|&word| word.to_owned());
    Plain {
        name: owned.next().unwrap_or_default(),
        arguments: owned.collect(),
        line,
        on_one_line: true,
        ..Plain::default()
    }
}

fn block(line: usize, words: &[&str], inner: Vec<Plain>) -> Plain {
    Plain { block: Some(inner), ..plain(line, words) }
}

#[test]
fn quotes_escapes_comments_and_braces_are_told_apart() {
    let text = r#"
        # a comment with ; and { in it
        user  www-data;events{worker_connections 768;}
        http {
            log_format a '$remote_addr "$request" it\'s'
                         "two;{}" plain#not-a-comment; # but this is
            map $uri $x { default ""; ~^/\d+\.x$ "a\\b\tc"; }
            content_by_lua_block { local x = "}" }
            server { location ~ \.php$ { return 200 ${host}x; } }
        }
    "#;
    let answer = plain(9, &["return", "200", "${host}x"]);
    let location = block(9, &["location", "~", r"\.php$"], vec![answer]);
    // Neither entries nor Lua are directives.
    let entries = vec![plain(7, &["default", ""]), plain(7, &[r"~^/\d+\.x$", "a\\b\tc"])];
    let map = block(7, &["map", "$uri", "$x"], Vec::new());
    let map = Plain { entries, ..map };
    let lua = block(8, &["content_by_lua_block"], Vec::new());
    let server = block(9, &["server"], vec![location]);
    let format = r#"$remote_addr "$request" it's"#;
    let log = Plain {
        on_one_line: false,
        ..plain(5, &["log_format", "a", format, "two;{}", "plain#not-a-comment"])
    };
    let http = block(4, &["http"], vec![log, map, lua, server]);
    let events = block(3, &["events"], vec![plain(3, &["worker_connections", "768"])]);
    let expected = vec![plain(3, &["user", "www-data"]), events, http];
    assert_eq!(directives(text), Ok(expected));
}

#[test]
fn a_directive_has_the_line_of_its_name() {
    let all = directives("a 1\n  2;\n\nb { # x\n c \"d\ne\"; f;\n}\ng;").unwrap();
    assert_eq!(lines_of(&all), [1, 4, 8]);
    assert_eq!(lines_of(all[1].block.as_ref().unwrap()), [5, 6]);
}

#[test]
fn what_nginx_would_refuse_is_refused_with_its_line() {
    for (text, line, what) in [
        ("a 1", 1, "a directive is not ended by `;`"),
        ("a;\nb {\n c 1 }", 3, "a directive is not ended by `;`"),
        ("a;\n}", 2, "there is a `}` too many"),
        ("a {\n b;\n", 1, "the `}` of this block is missing"),
        (";", 1, "a directive has no name"),
        ("{ }", 1, "a directive has no name"),
        ("a;\nb \"x;\n\n", 2, "a quote is not closed"),
        ("a \"x\"y;", 1, "there is something right behind a closing quote"),
    ] {
        let error = directives(text).unwrap_err();
        assert_eq!((error.line, error.what), (line, what), "{text:?}");
    }
}

fn lines_of(block: &[Plain]) -> Vec<usize> {
    block.iter().map(|it| it.line).collect()
}
