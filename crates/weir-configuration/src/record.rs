//! Records of the requests of loads and their answers, for the records of a run.

use weir_model::record::{AskedRecord, RequestRecord, SpotRecord};
use weir_model::study::AskSpec;

use crate::asked::{Request, RequestOutcome, Spot};
use crate::{Source, SourceFile};

impl Spot {
    pub fn record(&self, source: &Source) -> SpotRecord {
        let file = source.files.get(self.file);
        SpotRecord {
            name: self.name.clone(),
            file: file.map(|SourceFile { path, .. }| path.clone()).unwrap_or_default(),
            line: self.line,
        }
    }
}

/// Returns the record of a load's requests and their answers; None if there are no requests.
pub fn record(source: &Source, ask: &AskSpec, asked: &[RequestOutcome]) -> Option<AskedRecord> {
    let listener = &asked.first()?.listener;
    let requests = Request::all(ask).zip(asked).map(|(request, asked)| RequestRecord {
        host: request.host.to_owned(),
        target: request.target.to_owned(),
        past: asked.past.iter().map(|it| it.record(source)).collect(),
        through: asked.through.iter().map(|it| it.record(source)).collect(),
        server: asked.server.as_ref().map(|spot| spot.record(source)),
        location: asked.location.as_ref().map(|spot| spot.record(source)),
        answer: asked.answer.to_string(),
        compressed: asked.compressed.as_ref().map(|it| it.record(source)),
    });
    Some(AskedRecord {
        loads: Vec::new(),
        tls: ask.tls,
        listener: SpotRecord {
            name: listener.address.clone(),
            file: listener.file.clone(),
            line: listener.line,
        },
        requests: requests.collect(),
        replaced: Vec::new(),
    })
}
