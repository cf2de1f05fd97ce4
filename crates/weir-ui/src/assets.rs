//! Files of the page, which are part of the program.

use axum::http::header;
use axum::response::IntoResponse;

const PAGE: &str = include_str!("../web/dist/index.html");
const SCRIPT: &str = include_str!("../web/dist/weir.js");
const STYLE: &str = include_str!("../web/dist/weir.css");

pub(crate) async fn page() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE)
}

pub(crate) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}
