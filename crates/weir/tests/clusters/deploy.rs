//! Tests of the kustomize base and the Helm chart: they grant what `weir kube rights` prints, and a cluster accepts
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_testkit::cluster::Test;
use weir_testkit::program::{HasAll, run, wait_until};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn rights(user: &str, namespace: &str) -> String {
    let line = format!("kube rights {user} --namespace {namespace}");
    run(&line).with_code(0).stdout
}

/// Returns the files that are generated from weir's output.
fn generate() -> [(&'static str, String); 2] {
    let of_base = rights("weir", "weir");
    let template = rights("USER", "NAMESPACE").replace("NAMESPACE", "{{ .Release.Namespace }}");
    let (before, _) = template.split_once("subjects:").expect("the binding's last part");
    let subjects = r#"{{ toYaml (required "subjects: say who may start weir's pods" .Values.subjects) | indent 2 }}"#;
    let of_chart = format!("{before}subjects:\n{subjects}\n");
    [("kustomize/rights.yaml", of_base), ("helm/weir/templates/rights.yaml", of_chart)]
}

/// Compares the files with weir's output; `WEIR_WRITE_DOCS=1 cargo test -p weir --test clusters deploy` writes them anew.
#[test]
fn what_is_deployed_is_what_weir_prints() {
    for (name, text) in generate() {
        let path = folder().join(name);
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            fs::write(&path, &text).expect("deploy/ can be written");
        }
        assert_eq!(fs::read_to_string(path).expect("a file"), text, "{name}");
    }
}

fn run_successfully(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// Waits until the guest may start pods in a namespace.
fn guest_may(test: &Test, namespace: &str) {
    let question =
        format!("auth can-i create pods --subresource exec --as guest --namespace {namespace}");
    wait_until("the rights", || {
        let mut command = test.command("kubectl");
        let output = command.args(question.split(' ')).output().expect("kubectl");
        output.stdout.starts_with(b"yes")
    });
}

pub(crate) fn the_kustomize_base_is_applied(test: &Test) {
    let base = fs::canonicalize(folder().join("kustomize")).expect("the base");
    let overlay = tempfile::tempdir().expect("a folder");
    // As docs/kubernetes.md says. kustomize wants a relative path.
    let up = "../".repeat(overlay.path().components().count() - 1);
    let text = format!(
        r#"
resources: [{up}{}]
patches:
- target: {{kind: RoleBinding, name: weir}}
  patch: '[{{"op": "replace", "path": "/subjects/0/name", "value": "guest"}}]'
"#,
        base.strip_prefix("/").expect("an absolute path").display()
    );
    fs::write(overlay.path().join("kustomization.yaml"), text).expect("own folder");
    let mut kustomize = test.command("kubectl");
    let built = run_successfully(kustomize.arg("kustomize").arg(overlay.path()));
    built.has_all(&["kind: Namespace", "name: guest", "pods/exec"]);
    test.kubectl("apply --server-side --filename -", &built);
    guest_may(test, "weir");
    // With the namespace in place, they are what weir prints.
    test.kubectl("apply --server-side --force-conflicts --filename -", &rights("guest", "weir"));
    let differs = test.kubectl("diff --server-side --force-conflicts --filename -", &built);
    assert_eq!(differs, "");
}

pub(crate) fn the_helm_chart_is_installed(test: &Test) {
    let helm = test.program("helm");
    let chart = folder().join("helm/weir");
    let home = tempfile::tempdir().expect("a folder");
    let values =
        r#"subjects=[{"kind":"User","name":"guest","apiGroup":"rbac.authorization.k8s.io"}]"#;
    let [mut lint, mut template, mut install] =
        ["lint --strict", "template bench", "install bench --namespace charted --create-namespace"]
            .map(|words| {
                let mut command = test.command(&helm);
                command.args(words.split(' ')).arg(&chart).env("HOME", home.path());
                command
            });
    run_successfully(lint.args(["--set-json", values])).has("1 chart(s) linted, 0 chart(s) failed");
    let nobody = template.output().expect("helm");
    assert!(!nobody.status.success());
    String::from_utf8_lossy(&nobody.stderr).has("say who may start weir's pods");
    run_successfully(install.args(["--set-json", values]));
    guest_may(test, "charted");
    test.kubectl("delete namespace printed --ignore-not-found", "");
    test.kubectl("create namespace printed", "");
    test.kubectl("apply --filename -", &rights("guest", "printed"));
    let [charted, printed_by_weir] = ["charted", "printed"].map(|namespace| {
        let role = format!("get role weir --namespace {namespace} --output jsonpath={{.rules}}");
        test.kubectl(&role, "")
    });
    assert_eq!(charted, printed_by_weir);
    let mut remove = test.command(test.program("helm"));
    run_successfully(
        remove.args("uninstall bench --namespace charted".split(' ')).env("HOME", home.path()),
    );
    assert_eq!(test.kubectl("get roles --namespace charted --output name", ""), "");
}
