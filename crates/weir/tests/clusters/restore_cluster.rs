//! Tests of `weir restore --on`, with a stand-in for an API server that refuses some requests.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use weir_kube::{Cluster, ObjectRef};
use weir_objects::Changes;
use weir_testkit::program::{HasAll, Running, row, weir};

const GET: &str = "GET /api/v1/namespaces/default/configmaps/settings";
const PUT: &str = "PUT /api/v1/namespaces/default/configmaps/settings";
const JOBS: &str = "GET /apis/batch/v1/namespaces/default/jobs";
const NAMESPACE: &str = "GET /api/v1/namespaces/default";
/// Answer that fits several requests: an empty list, a version, or a permission.
const ANY: &str = r#"{"metadata": {}, "items": [], "spec": {}, "status": {"allowed": true}, "major": "1", "minor": "1",
 "gitVersion": "", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;

/// A ConfigMap, and a request to refuse with its status.
type State = Mutex<(Value, &'static str, u16)>;

/// Refuses a request with a status from now on, and returns the object's value as it is.
fn refuse(state: &State, request: &'static str, status: u16) -> Value {
    let mut cluster = state.lock().expect("whole");
    (cluster.1, cluster.2) = (request, status);
    cluster.0["data"]["keep"].clone()
}

/// Answers one request, and closes.
fn answer(stream: TcpStream, state: &State) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let first = lines.next()?;
    let lengths = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut body = vec![0; lengths.sum()];
    reader.read_exact(&mut body).ok()?;
    let request = first.rsplit_once(' ')?.0;
    let (request, query) = request.split_once('?').unwrap_or((request, ""));
    let body = String::from_utf8(body).ok()?;
    let mut cluster = state.lock().ok()?;
    let (status, text) = if request == cluster.1 {
        let why = json!({"status": "Failure", "message": format!("{request} is refused here"), "code": cluster.2});
        (cluster.2, why.to_string())
    } else if request == PUT {
        if !query.contains("dryRun") {
            cluster.0 = serde_json::from_str(&body).ok()?;
        }
        (200, body)
    } else if request == GET {
        (200, cluster.0.to_string())
    } else {
        (200, ANY.to_owned())
    };
    let head = "Content-Type: application/json\r\nConnection: close";
    let text = format!(
        "HTTP/1.1 {status} Answer\r\n{head}\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    reader.get_mut().write_all(text.as_bytes()).ok()
}

/// Checks that objects are restored first, whatever else fails: lists may be forbidden or fail while objects can still
/// be restored.
#[test]
fn objects_are_put_back_where_nothing_can_be_listed() {
    let rows = [(JOBS, 403, 1), (JOBS, 500, 1), (NAMESPACE, 500, 1), ("", 0, 0)];
    for (refused, status, code) in rows {
        row(&format!("{refused} {status}"));
        let metadata = json!({"name": "settings", "uid": "u", "resourceVersion": "1"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"keep": "7"}, "metadata": metadata});
        let state: Arc<State> = Arc::new(Mutex::new((object, "", 0)));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| {
                let _ = answer(stream, &served);
            });
        });
        let folder = tempfile::tempdir().expect("a folder");
        let (journal, config) = (folder.path().join("journal"), folder.path().join("config"));
        let text = format!(
            "contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a}}]\n\
             clusters: [{{name: a, cluster: {{server: \"http://{server}\"}}}}]\n"
        );
        fs::write(&config, text).expect("own folder");
        fs::create_dir(&journal).expect("own folder");
        let settings = json!({"api": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": "default", "name": "settings"});
        let settings: ObjectRef = serde_json::from_value(settings).expect("an object");
        let target = "kubernetes:a".parse().expect("a target");
        let cluster = Cluster::connect(Some(&config), &target, false).expect("it answers");
        let mut changes = Changes::open(&cluster, &journal, "a test").expect("nobody has it");
        let values = BTreeMap::from([("/data/keep".to_owned(), Some(json!("50")))]);
        assert!(changes.set(&settings, &values).expect("it is taken"));
        // As by a weir that was killed: nothing is put back.
        refuse(&state, PUT, 500);
        drop(changes);
        assert_eq!(refuse(&state, refused, status), "50");
        let mut command = weir(["restore", "--on", "kubernetes:a"]);
        let places = [("KUBECONFIG", &config), ("WEIR_JOURNAL", &journal)];
        let ended = Running::start(command.envs(places)).end().with_code(code);
        assert_eq!(refuse(&state, "", 0), "7");
        ended.stdout.has("default/settings: put back: /data/keep");
        let is_said = ended.stderr.contains(&format!("{refused} is refused here"));
        assert_eq!(is_said, code != 0, "{}", ended.stderr);
    }
}
