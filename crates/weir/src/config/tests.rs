use clap::CommandFactory;

use super::settings::{Kind, SETTINGS};
use super::value::words;
use super::*;

/// Checks every row: one that names a missing option would silently have no effect.
#[test]
fn every_setting_is_an_option_of_its_commands_and_needs_no_other() {
    let all = Args::command();
    for setting in &SETTINGS {
        for name in setting.commands {
            let command = all.find_subcommand(name).expect("a command");
            let option = argument(command, setting)
                .unwrap_or_else(|| panic!("{name} has no {}", setting.key));
            let takes = option.get_action().takes_values();
            assert_eq!(takes, setting.kind != Kind::Flag, "{name} {}", setting.key);
            let values = match setting.kind {
                Kind::Flag => ["true".to_owned()],
                _ => [example(option)],
            };
            let typed =
                ["weir", *name, "x"].map(str::to_owned).into_iter().chain(words(setting, &values));
            let parsed = all.clone().try_get_matches_from(typed);
            if let Err(error) = parsed {
                let kind = error.kind();
                let has_no_positional = clap::error::ErrorKind::UnknownArgument;
                assert_eq!(kind, has_no_positional, "{name} {}: {error}", setting.key);
            }
        }
    }
}

fn example(option: &Arg) -> String {
    let choices = option.get_possible_values();
    choices.first().map_or("1".to_owned(), |value| value.get_name().to_owned())
}

/// Returns the command line after adding defaults of a file and of the environment.
fn completed(typed: &str, file: &str, variables: &[(&str, &str)]) -> String {
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let defaults = Defaults {
        layers: vec![
            environment::read(environment).unwrap(),
            file::parse(file, "weir.toml", true).unwrap(),
        ],
        files: Vec::new(),
    };
    let all = Args::command();
    let matches = all.clone().ignore_errors(true).try_get_matches_from(typed.split(' ')).unwrap();
    let (name, matches) = matches.subcommand().unwrap();
    let words = super::words(&defaults, all.find_subcommand(name).unwrap(), matches);
    words.words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Typed command line, environment variables, and the words that these add.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);

#[test]
fn what_is_typed_comes_before_the_environment_and_that_before_files() {
    let file = "connections = 10\nquiet = true\nformat = \"json\"\n\
                header = [\"A: b\"]\n[load]\ncpus = 1\nduration = \"1m\"\n";
    #[rustfmt::skip]
    let rows: [Row; 10] = [
        ("weir load URL", &[], "--format=json --quiet --connections=10 --cpus=1 --duration=1m --header=A: b"),
        ("weir load URL -c 5 --format text -q", &[], "--cpus=1 --duration=1m --header=A: b"),
        // What cannot stand beside what was typed, or does not count beside it, is left out.
        ("weir load URL -t 2 -n 9 -c 5 -q -H C:d", &[], "--format=json"),
        ("weir load URL -q -c 5 -H C:d", &[("WEIR_FORMAT", "hgrm"), ("WEIR_THREADS", "3")], "--format=hgrm --threads=3 --duration=1m"),
        ("weir load URL -q -c 5 -H C:d -t 1", &[("WEIR_LOAD_DURATION", "5"), ("WEIR_DURATION", "6")], "--duration=5 --format=json"),
        // The environment switches off what a file has switched on, and nothing that others alone know is taken.
        ("weir capacity http://a/", &[("WEIR_QUIET", "no"), ("WEIR_FORMAT", "hgrm")], "--format=json --connections=10 --header=A: b"),
        // A study says itself what the load is; a run that goes on has its load.
        ("weir capacity study.yaml", &[], "--format=json --quiet"),
        ("weir capacity --resume x", &[("WEIR_OUT", "y"), ("WEIR_SAMPLES", "off")], "--samples=off --format=json --quiet"),
        ("weir run study --time 5%", &[("WEIR_BUDGET", "1m")], "--format=json"),
        ("weir run study --check", &[], ""),
    ];
    for (typed, variables, expected) in rows {
        assert_eq!(completed(typed, file, variables), expected, "{typed} {variables:?}");
    }
}

#[test]
fn a_file_s_mistakes_are_all_told_with_their_places() {
    let text = "connection = 5\nconnections = \"many\"\nformat = \"jso\"\nrun = 3\n\
                [load]\nduration = \"1 week\"\nquiet = 1\nhold = \"1s\"\n[lod]\n\n\
                [capacity]\nformat = \"hgrm\"\nplace = [\"all=x\"]\nheader = \"A: b\"\n";
    let errors = file::parse(text, "weir.toml", false).unwrap_err();
    let shown: Vec<String> = errors
        .errors()
        .iter()
        .map(|error| {
            let nearest = error.nearest.as_deref().unwrap_or("-");
            format!("{}:{} {nearest}: {}", error.line, error.column, error.message)
        })
        .collect();
    let expected = [
        "1:1 connections: `connection` is not a setting",
        "2:15 -: `many` is not a whole number such as 50, 2k or 1M",
        "3:10 json: `jso` is not one of text, json, csv, jsonl, wrk2, hgrm",
        "4:7 -: `run` is a table: [run]",
        "6:12 -: `duration`: ",
        "7:9 -: the value of `quiet` must be true or false",
        "8:1 -: `hold` is not a setting of `weir load`",
        "9:2 load: `lod` is not a setting",
        "12:10 -: `hgrm` is not one of text, markdown, json, csv",
        "13:1 -: `place` is not allowed in the weir.toml of a folder",
        "14:10 -: the value of `header` must be a list, such as [\"…\"]",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown}\n{expected}");
    }
    let errors = file::parse("a = \n", "weir.toml", true).unwrap_err();
    assert_eq!(errors.errors()[0].line, 1);
}
