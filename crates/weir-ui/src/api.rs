//! Requests of the page, and their answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router, middleware};
use serde::{Deserialize, Serialize};
use weir_report::secrets::masked;

use crate::access::{self, Guard};
use crate::jobs::{ListedJob, News};
use crate::program::main_part;
use crate::runs::{self, Rows};
use crate::{Checked, Shared, StudyText, assets};

/// Time that a request for news waits for some.
const PATIENCE: Duration = Duration::from_secs(10);

/// A refusal: a status, and a sentence for the user.
type Refusal = (StatusCode, String);
type Server = State<Arc<Shared>>;

pub(crate) fn router(shared: Arc<Shared>, guard: Guard) -> Router {
    Router::new()
        .route("/", get(assets::page))
        .route("/weir.js", get(assets::script))
        .route("/weir.css", get(assets::style))
        .route("/api/about", get(about))
        .route("/api/runs", get(list_runs))
        .route("/api/runs/{name}/report", get(report))
        .route("/api/runs/{name}/samples/{table}", get(samples))
        .route("/api/compare", get(compare))
        .route("/api/history", get(history))
        .route("/api/studies", get(studies))
        .route("/api/studies/{name}", put(save))
        .route("/api/check", post(check))
        .route("/api/catalog", get(catalog))
        .route("/api/doctor", get(doctor))
        .route("/api/jobs", get(list_jobs).post(start))
        .route("/api/jobs/{number}", get(news))
        .route("/api/jobs/{number}/stop", post(stop))
        .layer(DefaultBodyLimit::max(runs::LONGEST_STUDY * 2))
        .layer(middleware::from_fn_with_state(Arc::new(guard), access::check))
        .with_state(shared)
}

/// Properties of the server.
#[derive(Serialize)]
struct About {
    version: &'static str,
    folder: String,
    is_read_only: bool,
}

async fn about(State(shared): Server) -> Json<About> {
    Json(About {
        version: shared.bench.version,
        folder: shared.bench.folder.display().to_string(),
        is_read_only: shared.is_read_only,
    })
}

async fn list_runs(State(shared): Server) -> Result<Response, Refusal> {
    if !shared.bench.folder.join(runs::RUNS).is_dir() {
        return Ok(Json(serde_json::json!({ "runs": [] })).into_response());
    }
    json(&shared, &["runs", runs::RUNS, "--format", "json"]).await
}

async fn report(State(shared): Server, Path(name): Path<String>) -> Result<Response, Refusal> {
    let run = find(&shared, &name)?;
    fragment(&shared, &["report", &text_of(&run), "--format", "html"]).await
}

async fn samples(
    State(shared): Server,
    Path((name, table)): Path<(String, String)>,
) -> Result<Json<Rows>, Refusal> {
    let run = find(&shared, &name)?;
    beside(move || runs::read_samples(&run, &table)).await.map(Json)
}

/// Two runs to compare.
#[derive(Deserialize)]
struct Pair {
    old: String,
    new: String,
}

async fn compare(State(shared): Server, Query(pair): Query<Pair>) -> Result<Response, Refusal> {
    let [old, new] = [find(&shared, &pair.old)?, find(&shared, &pair.new)?];
    let words = ["compare", &text_of(&old), &text_of(&new), "--format", "html"];
    fragment(&shared, &words).await
}

async fn history(State(shared): Server) -> Result<Response, Refusal> {
    fragment(&shared, &["history", runs::RUNS, "--format", "html"]).await
}

/// Studies that can be run.
#[derive(Serialize)]
struct Studies {
    own: Vec<StudyText>,
    ready_made: Vec<StudyText>,
}

async fn studies(State(shared): Server) -> Result<Json<Studies>, Refusal> {
    let ready_made = shared.bench.ready_made.clone();
    let in_files = beside(move || runs::studies(&shared.bench.folder)).await?;
    Ok(Json(Studies { own: in_files, ready_made }))
}

/// The text of a study.
#[derive(Deserialize)]
struct Text {
    text: String,
}

async fn check(
    State(shared): Server,
    Json(Text { text }): Json<Text>,
) -> Result<Json<Checked>, Refusal> {
    beside(move || (shared.bench.check)(&text)).await.map(Json)
}

async fn save(
    State(shared): Server,
    Path(name): Path<String>,
    Json(Text { text }): Json<Text>,
) -> Result<StatusCode, Refusal> {
    refuse_if_read_only(&shared)?;
    let path = runs::study_file(&shared.bench.folder, &name).ok_or_else(|| {
        let why = "a study's name has letters, digits, - and _, at most 64";
        (StatusCode::BAD_REQUEST, why.to_owned())
    })?;
    if text.len() > runs::LONGEST_STUDY {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the study is longer than 1 MiB".to_owned()));
    }
    let written = beside(move || weir_files::replace(&path, text.as_bytes())).await?;
    written
        .map_err(|error| (StatusCode::CONFLICT, format!("cannot write {name}.yaml: {error}")))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn catalog(State(shared): Server) -> Result<Response, Refusal> {
    json(&shared, &["parameters", "--format", "json"]).await
}

/// Returns what the doctor says, also where it cannot choose among several proxies of the host.
async fn doctor(State(shared): Server) -> String {
    let (Ok(text) | Err(text)) = shared.program.answer(&["doctor"]).await;
    masked(&text).into_owned()
}

async fn list_jobs(State(shared): Server) -> Json<Vec<ListedJob>> {
    Json(shared.jobs.list())
}

/// A run to start or to go on with.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Start {
    /// The name of a ready-made study, or of one in the user's folder.
    Study(String),
    /// The name of a run folder.
    Resume(String),
}

/// The number of a job.
#[derive(Serialize)]
struct Started {
    number: usize,
}

async fn start(State(shared): Server, Json(what): Json<Start>) -> Result<Json<Started>, Refusal> {
    refuse_if_read_only(&shared)?;
    let (title, mut words) = match &what {
        Start::Study(name) => (name, vec!["run".to_owned(), study_of(&shared, name)?]),
        Start::Resume(name) => {
            let run = text_of(&find(&shared, name)?);
            (name, vec!["run".to_owned(), "--resume".to_owned(), run])
        }
    };
    words.extend(["--progress".to_owned(), "jsonl".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let started = shared.jobs.start(&shared.program, title, &words);
    started.map(|number| Json(Started { number })).map_err(|why| (StatusCode::CONFLICT, why))
}

/// Returns what `weir run` calls a study: its file, or the name of a ready-made one.
fn study_of(shared: &Shared, name: &str) -> Result<String, Refusal> {
    let file = runs::study_file(&shared.bench.folder, name).filter(|path| path.is_file());
    let is_ready_made = shared.bench.ready_made.iter().any(|study| study.name == name);
    match file {
        Some(path) => Ok(text_of(&path)),
        None if is_ready_made => Ok(name.to_owned()),
        None => Err((StatusCode::NOT_FOUND, "there is no study of this name".to_owned())),
    }
}

/// The number of the next event that the page does not have.
#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: usize,
}

async fn news(
    State(shared): Server,
    Path(number): Path<usize>,
    Query(After { after }): Query<After>,
) -> Result<Json<News>, Refusal> {
    let job = shared.jobs.find(number).ok_or_else(no_job)?;
    Ok(Json(job.news(after, PATIENCE).await))
}

async fn stop(State(shared): Server, Path(number): Path<usize>) -> Result<StatusCode, Refusal> {
    refuse_if_read_only(&shared)?;
    shared.jobs.find(number).ok_or_else(no_job)?.stop();
    Ok(StatusCode::NO_CONTENT)
}

fn no_job() -> Refusal {
    (StatusCode::NOT_FOUND, "the page has started no such run".to_owned())
}

fn refuse_if_read_only(shared: &Shared) -> Result<(), Refusal> {
    if shared.is_read_only {
        let why = "this page only shows: weir ui was started with --read-only";
        return Err((StatusCode::FORBIDDEN, why.to_owned()));
    }
    Ok(())
}

fn find(shared: &Shared, name: &str) -> Result<PathBuf, Refusal> {
    runs::find(&shared.bench.folder, name)
        .ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such run".to_owned()))
}

/// Returns a path as an argument, which no option looks like.
fn text_of(path: &std::path::Path) -> String {
    path.display().to_string()
}

/// Returns the answer of a command without secrets.
async fn answer(shared: &Shared, words: &[&str]) -> Result<String, Refusal> {
    let answer = shared.program.answer(words).await;
    answer
        .map(|text| masked(&text).into_owned())
        .map_err(|error| (StatusCode::UNPROCESSABLE_ENTITY, masked(&error).into_owned()))
}

/// Returns the JSON that a command prints.
async fn json(shared: &Shared, words: &[&str]) -> Result<Response, Refusal> {
    let text = answer(shared, words).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Returns what a page that a command prints has between its head and its end.
async fn fragment(shared: &Shared, words: &[&str]) -> Result<Response, Refusal> {
    let page = shared.program.answer(words).await;
    let page =
        page.map_err(|error| (StatusCode::UNPROCESSABLE_ENTITY, masked(&error).into_owned()))?;
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    Ok((kind, main_part(&page).to_owned()).into_response())
}

/// Runs what reads files on a thread of its own.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
