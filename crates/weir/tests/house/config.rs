//! Tests of defaults from the environment and from `weir.toml`: values, sources, and refusals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use weir_testkit::origin;
use weir_testkit::program::{Ended, HasAll, Running, weir};

/// A user with a weir.toml of their own, in a folder that has another one.
struct User(TempDir);

impl User {
    fn new(home: &str, folder: &str) -> User {
        let user = User(tempfile::tempdir().expect("a folder"));
        for (below, text) in [("config/weir", home), ("work", folder)] {
            let path = user.0.path().join(below);
            fs::create_dir_all(&path).expect("a folder");
            fs::write(path.join("weir.toml"), text).expect("a file");
        }
        user
    }

    fn work(&self) -> std::path::PathBuf {
        self.0.path().join("work")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = weir(line.split(' '));
        command.current_dir(self.work()).env("XDG_CONFIG_HOME", self.0.path().join("config"));
        command
    }

    fn run(&self, line: &str, variables: &[(&str, &str)]) -> Ended {
        let mut command = self.command(line);
        command.envs(variables.iter().copied());
        Running::start(&mut command).end()
    }
}

/// Returns an option's values and their source from the output of `weir config`.
fn find_setting(document: &Value, command: &str, option: &str) -> (String, String) {
    let all = document["settings"].as_array().expect("settings");
    let setting = all
        .iter()
        .find(|setting| setting["command"] == command && setting["option"] == option)
        .unwrap_or_else(|| panic!("{command} {option}"));
    let values: Vec<&str> =
        setting["values"].as_array().expect("values").iter().filter_map(Value::as_str).collect();
    let source = setting["place"].as_str().unwrap_or("default");
    (values.join(" "), source.to_owned())
}

#[test]
fn config_shows_every_default_and_where_it_is_from() {
    let user = User::new(
        "connections = 7\nquiet = true\nplace = [\"proxy=web1\"]\n[load]\nspin = \"0s\"\n",
        "\n# What this folder measures.\nconnections = 9\n[load]\ntimeout = \"3s\"\n",
    );
    let variables = [("WEIR_CPUS", "0"), ("WEIR_CAPACITY_HOLD", "5s")];
    let document: Value = user.run("config --format json", &variables).document();
    let file = user.0.path().join("config/weir/weir.toml");
    let [quiet, place] = ["2:1", "3:1"].map(|position| format!("{}:{position}", file.display()));
    #[rustfmt::skip]
    let rows = [
        ("load", "--connections", "9", "weir.toml:3:1"),
        ("load", "--timeout", "3s", "weir.toml:5:1"),
        ("load", "--cpus", "0", "WEIR_CPUS"),
        ("load", "--quiet", "true", &*quiet),
        ("load", "--format", "text", "default"),
        ("load", "--duration", "10s, or as long as -n or --trace takes", "default"),
        ("capacity", "--connections", "9", "weir.toml:3:1"),
        ("capacity", "--timeout", "2s", "default"),
        ("capacity", "--hold", "5s", "WEIR_CAPACITY_HOLD"),
        ("run", "--place", "proxy=web1", &*place),
        ("run", "--until", "as in the study, or planned", "default"),
        ("config", "--format", "text", "default"),
    ];
    for (command, option, values, source) in rows {
        let expected = (values.to_owned(), source.to_owned());
        assert_eq!(find_setting(&document, command, option), expected, "{command} {option}");
    }
    let text = user.run("config", &variables).with_code(0).stdout;
    text.has_all(&["weir.toml: read\n", "weir load\n", "WEIR_CPUS\n", "weir.toml:3:1\n"]);
}

#[test]
fn a_load_has_the_defaults_and_without_any_it_is_as_ever() {
    let (_server, address) = origin::start("--size 1");
    let url = format!("http://{address}/");
    let user = User::new("connections = 3\nformat = \"json\"\nquiet = true\n", "");
    let line = format!("load -n 20 {url}");
    let of_users: Value = user.run(&line, &[]).with_code(0).document();
    assert_eq!(of_users["load"]["connections"], 3);
    let typed: Value = user.run(&format!("{line} -c 2"), &[("WEIR_CONNECTIONS", "4")]).document();
    assert_eq!(typed["load"]["connections"], 2);
    let of_environment: Value = user.run(&line, &[("WEIR_CONNECTIONS", "4")]).document();
    assert_eq!(of_environment["load"]["connections"], 4);
    Running::start(&mut weir(line.split(' '))).end().with_code(0).stdout.has("50 asked for");
}

#[test]
fn mistakes_are_told_with_file_line_column_and_the_nearest_name() {
    let user = User::new("", "cpus = \"0\"\nconections = 5\n[load]\nformat = \"jso\"\n");
    let refused = user.run("load http://127.0.0.1:1/", &[]).refused(&[
        "error: `conections` is not a setting",
        "weir.toml:2:1",
        "did you mean `connections`?",
        "weir.toml:4:10",
        "did you mean `json`?",
        "2 errors in weir.toml",
    ]);
    refused.stderr.has_none(&["cpus"]);
    // What has no defaults is not kept from its work by them.
    user.run("studies", &[]).with_code(0);

    let user = User::new("", "ssh_option = [\"-oProxyCommand=id\"]\n");
    user.run("run same-twice --check", &[])
        .refused(&["not allowed in the weir.toml of a folder", "weir.toml:1:1"]);

    let user = User::new("", "");
    user.run("load http://127.0.0.1:1/", &[("WEIR_IO", "epol")])
        .refused(&["weir: WEIR_IO: `epol` is not one of", "hint: did you mean `epoll`?"]);
    user.run("config", &[("WEIR_FORMT", "json")])
        .says(&["WEIR_FORMT is not a setting; did you mean WEIR_FORMAT?"]);
}

#[test]
fn a_default_that_cannot_be_is_told_with_where_it_is_from() {
    // What is in a file, what is typed, what the message is about, and where that is from.
    #[rustfmt::skip]
    let rows = [
        ("connections = 0\n", "load http://127.0.0.1:1/", "-c: `0`", Some("--connections was not typed: it is from weir.toml:1:1")),
        ("[load]\ntimeout = \"0s\"\n", "load http://127.0.0.1:1/", "-T: `0s`", Some("--timeout was not typed: it is from weir.toml:2:1")),
        ("connections = 0\n", "load -c 0 http://127.0.0.1:1/", "-c: `0`", None),
        ("connections = 7\n", "load -R fast http://127.0.0.1:1/", "-R: `fast`", None),
    ];
    for (file, line, about, source) in rows {
        let user = User::new("", file);
        let stderr = user.run(line, &[]).refused(&[about]).stderr;
        match source {
            Some(source) => stderr.has(source),
            None => stderr.has_none(&["not typed"]),
        }
    }
}

#[test]
fn a_file_that_others_could_have_written_is_refused() {
    for (below, mode) in [
        ("work/weir.toml", 0o666),
        ("work", 0o777),
        ("work", 0o1777),
        ("config/weir/weir.toml", 0o602),
    ] {
        let user = User::new("quiet = true\n", "quiet = true\n");
        let path = user.0.path().join(below);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        user.run("config", &[]).refused_in_a_line(&[
            "weir.toml is not used: ",
            "can be written by others",
            "chmod go-w",
        ]);
    }
    // Of a folder that is somebody else's nothing is taken, whatever is done there; as root alone.
    let user = User::new("", "quiet = true\nformat = \"json\"\n");
    if std::os::unix::fs::chown(user.work(), Some(12_345), None).is_ok() {
        for line in ["config", "report .", "run --resume ."] {
            let why = ["weir.toml is not used: ", "belongs to another user"];
            user.run(line, &[]).refused_in_a_line(&why);
        }
    }
    // A link is fine where nobody else could have made it: many keep such files elsewhere.
    let user = User::new("", "");
    let (real, link) = (user.0.path().join("elsewhere"), user.work().join("weir.toml"));
    fs::write(&real, "connections = 8\n").expect("a file");
    fs::remove_file(&link).expect("it was there");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let document: Value = user.run("config --format json", &[]).document();
    assert_eq!(find_setting(&document, "load", "--connections").0, "8");
}
