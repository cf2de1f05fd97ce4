//! Reading loses nothing, and gives the same result as nginx.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use weir_nginx::language as nginx;
use weir_nginx::language::syntax::{self, Directive};

use super::{Copy, User, all};
use crate::languages::support::listed;

/// Collects the words of a tree by their meaning.
fn words(directives: &[Directive], into: &mut Vec<String>) {
    for directive in directives {
        into.push(directive.name.text.clone());
        into.extend(directive.words().map(str::to_owned));
        into.push(if directive.block.is_some() { "{" } else { ";" }.to_owned());
        words(directive.children(), into);
    }
}

#[test]
fn all_configurations_are_written_back_to_the_byte() {
    type Rewrite = fn(&str) -> String;
    let spellings: [Rewrite; 4] = [
        str::to_owned,
        |text| text.replace('\n', "\r\n"),
        |text| format!("\u{feff}{text}"),
        |text| text.trim_end().replace("    ", "\t"),
    ];
    for name in all() {
        for rewrite in spellings {
            let user = User::rewritten(name, rewrite);
            let source = user.read();
            for file in &source.files {
                assert_eq!(fs::read_to_string(&file.path).unwrap(), file.text, "{name}");
            }
            let copy = tempfile::tempdir().unwrap();
            let main = source.write_below(copy.path()).unwrap();
            let (copy, own) = (fs::read(main).unwrap(), fs::read(user.main()).unwrap());
            assert_eq!(copy, own, "{name}");
            let same = nginx::change(&source, &[]).unwrap();
            assert_eq!(same, source, "{name}");
        }
    }
}

#[test]
fn the_spans_of_a_tree_are_its_words() {
    for name in all() {
        for file in User::of(name).read().files {
            let tree = syntax::parse(&file.text).unwrap();
            check_spans(&file.text, &tree.directives);
            for comment in tree.comments {
                assert!(file.text[comment].starts_with('#'), "{name}");
            }
        }
    }
}

fn check_spans(text: &str, directives: &[Directive]) {
    for directive in directives {
        for word in std::iter::once(&directive.name).chain(&directive.arguments) {
            let raw = &text[word.span.clone()];
            let reread = syntax::parse(&format!("{raw};")).unwrap();
            assert_eq!(reread.directives[0].name.text, word.text);
        }
        let end = directive.terminator..directive.terminator + 1;
        match &directive.block {
            None => assert_eq!(&text[end], ";"),
            Some(block) => {
                assert_eq!((&text[end], &text[block.close..=block.close]), ("{", "}"));
                check_spans(text, &block.directives);
            }
        }
    }
}

#[test]
fn blocks_of_lua_end_where_they_end() {
    let source = User::of("lua").read();
    let tree = syntax::parse(&source.files[0].text).unwrap();
    let http = tree.directives.iter().find(|it| it.is("http")).unwrap();
    let lua = ["lua_package_path", "lua_shared_dict", "init_by_lua_block", "upstream", "server"];
    assert_eq!(names_of(http), lua);
    let upstream = ["server", "balancer_by_lua_block", "keepalive"];
    assert_eq!(names_of(&http.children()[3]), upstream);
}

#[test]
fn files_come_in_nginx_s_order_and_once() {
    let user = User::of("nested");
    let source = user.read();
    let folder = user.folder.path().canonicalize().unwrap();
    let names: Vec<String> = source
        .files
        .iter()
        .map(|file| file.path.strip_prefix(&folder).unwrap().display().to_string())
        .collect();
    assert_eq!(
        names.join(" "),
        "nginx.conf main.conf events.conf conf.d/10-proxy.conf conf.d/20-upstreams.conf servers.list \
         sites/alpha proxy_params sites/omega"
    );
    assert!(source.includes["modules/*.conf"].is_empty());
    assert_eq!(source.includes["proxy_params"], [7]);
}

#[test]
fn a_pattern_takes_no_hidden_files_and_a_link_is_read_where_it_leads() {
    let user = User::of("debian");
    user.write("sites-available/shop", "server { listen 81; }\n");
    symlink("../sites-available/shop", user.folder.path().join("sites-enabled/shop")).unwrap();
    let source = user.read();
    let last = &source.files.last().unwrap().path;
    assert!(last.ends_with("sites-available/shop"), "{last:?}");
    assert!(!source.files.iter().any(|file| file.path.ends_with(".hidden")));
}

#[test]
fn a_pattern_leaves_out_what_glob_leaves_out() {
    let user = User::with("events { }\nhttp { include c/[^_]*.conf; }\n");
    for name in ["_off.conf", "^on.conf", "on.conf"] {
        user.write(&format!("c/{name}"), "server { listen 81; }\n");
    }
    let files = user.read().files;
    let names = files[1..].iter().map(|file| file.path.file_name().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["^on.conf", "on.conf"]);
}

#[test]
fn includes_may_be_taken_from_elsewhere() {
    let user = User::with("events { include inner; }");
    user.write("elsewhere/inner", "worker_connections 9;");
    let elsewhere = user.folder.path().join("elsewhere");
    let source = nginx::read(&user.main(), Some(&elsewhere)).unwrap();
    assert!(source.files[1].path.ends_with("elsewhere/inner"));
}

#[test]
fn listeners_are_found_with_their_places() {
    let user = User::of("listeners");
    let listeners = nginx::listeners(&user.read()).unwrap();
    assert_eq!(
        listed(&listeners),
        "4 8087 8087, 4 127.0.0.1:8087 8087, 4 [::1]:8088 8088, 5 *:8087 8087, 5 127.0.0.1:8089 8089, \
         6 unix:/run/nginx-c.sock, 6 localhost:8089 8089, 7 8090 8090, 8 *:80 80"
    );
    let tls = nginx::listeners(&User::of("tls").read()).unwrap();
    assert_eq!(tls.iter().filter(|it| it.tls).count(), 2);
}

/// `ssl` of any server on the socket counts (`ngx_http_add_addresses`).
#[test]
fn tls_is_the_socket_s() {
    let user = User::with(
        "events { }
         http {
             server { listen 443 ssl; listen 80; server_name a; }
             server { listen 0.0.0.0:443; listen 8443; server_name b; }
         }\n",
    );
    let listeners = nginx::listeners(&user.read()).unwrap();
    let tls: Vec<bool> = listeners.iter().map(|it| it.tls).collect();
    assert_eq!(tls, [true, false, true, false]);
}

/// nginx itself takes a byte order mark for a part of the first word.
#[test]
fn a_byte_order_mark_stays_and_nginx_says_what_it_thinks_of_it() {
    let user = User::rewritten("minified", |text| format!("\u{feff}{text}"));
    let source = user.read();
    let output = Copy::of(&source).nginx("-t");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown directive"));
}

#[test]
fn what_nginx_prints_reads_back_as_what_it_was_given() {
    for name in ["maps", "quotes", "nested", "conditions"] {
        let user = User::of(name);
        let copy = Copy::of(&user.read());
        let printed = copy.accepted(name);
        let (mut of_nginx, mut of_files) = (Vec::new(), Vec::new());
        words(&syntax::parse(&printed).unwrap().directives, &mut of_nginx);
        for file in nginx::read(&copy.main, None).unwrap().files {
            let tree = syntax::parse(&file.text).unwrap();
            words(&tree.directives, &mut of_files);
        }
        of_nginx.sort();
        of_files.sort();
        assert_eq!(of_nginx, of_files, "{name}");
    }
}

proptest! {
    /// Words in quotes keep their meaning, and no text makes the reader panic.
    #[test]
    fn any_words_are_read_and_any_text_is_answered(
        words in prop::collection::vec(any::<String>(), 1..4),
        text in "[a{};\"'\\\\$#=\\[\\]\\- \r\n\té]{0,40}",
    ) {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect();
        let tree = syntax::parse(&format!("name {};", quoted.join("\r\n"))).unwrap();
        let read: Vec<&str> = tree.directives[0].words().collect();
        prop_assert_eq!(read, words);
        for text in [format!("a_by_lua_block {{{text}"), text] {
            if let Ok(tree) = syntax::parse(&text) {
                check_spans(&text, &tree.directives);
            }
        }
    }
}

fn names_of(block: &Directive) -> Vec<&str> {
    block.children().iter().map(|it| &*it.name.text).collect()
}
