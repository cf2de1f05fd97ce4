//! Loads as stored in run folders, including those from before a load had flows.

use std::time::Duration;

use serde::Deserialize;

use super::{ArrivalsSpec, FlowSpec, LoadSpec};
use crate::load::{Lifetime, RequestSpec, Spacing};
use crate::request::WeightedRequest;
use crate::spin::Spin;
use crate::study::MatrixCell;
use crate::tls::TlsSpec;

/// All fields that a stored load may have, in either format.
#[derive(Deserialize)]
pub(super) struct LoadShape {
    name: String,
    main: Option<FlowSpec>,
    #[serde(default)]
    beside: Vec<FlowSpec>,
    duration: Duration,
    #[serde(default)]
    ramp_up: Duration,
    #[serde(default)]
    spin: Spin,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    cell: Option<MatrixCell>,
    #[serde(flatten)]
    only: Option<OnlyFlow>,
}

/// Fields of a load in the older format, which had one flow and held connections beside it.
#[derive(Deserialize)]
struct OnlyFlow {
    arrivals: ArrivalsSpec,
    #[serde(default)]
    burst: Option<u32>,
    connections: u32,
    #[serde(default)]
    lifetime: Lifetime,
    #[serde(default)]
    tls: Option<TlsSpec>,
    #[serde(default)]
    held: u32,
    request: RequestSpec,
    timeout: Duration,
}

impl TryFrom<LoadShape> for LoadSpec {
    type Error = &'static str;

    fn try_from(shape: LoadShape) -> Result<LoadSpec, Self::Error> {
        let mut beside = shape.beside;
        let main = match (shape.main, shape.only) {
            (Some(main), _) => main,
            (None, Some(only)) => {
                beside.extend((only.held > 0).then(|| FlowSpec::held(only.held)));
                FlowSpec {
                    spacing: only.burst.map_or(Spacing::Even, |size| Spacing::Burst { size }),
                    lifetime: only.lifetime,
                    timeout: only.timeout,
                    tls: only.tls,
                    requests: vec![WeightedRequest::single(only.request)],
                    ..FlowSpec::new(only.connections, only.arrivals)
                }
            }
            (None, None) => return Err("a load says nothing of its connections and arrivals"),
        };
        Ok(LoadSpec {
            name: shape.name,
            main,
            beside,
            duration: shape.duration,
            ramp_up: shape.ramp_up,
            spin: shape.spin,
            size: shape.size,
            cell: shape.cell,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Assignment;
    use crate::tls::{Resumption, TlsVersion};

    /// Loads as weir 0.1 wrote them before loads had flows.
    const CLOSED: &str = r#"{"name":"closed","arrivals":"closed","connections":50,"lifetime":"kept",
        "tls":null,"held":0,"request":{"method":"GET","target":"/","fields":[]},"size":null,
        "duration":{"secs":120,"nanos":0},"timeout":{"secs":2,"nanos":0}}"#;
    const MUCH: &str = r#"{"name":"c100-r300","arrivals":{"constant":300.0},"burst":100,
        "connections":100,"lifetime":{"requests":10},"tls":{"versions":["1.2"],
        "ciphers":["ECDHE-RSA-AES256-GCM-SHA384"],"resumption":{"ratio":0.8}},"held":1000,
        "request":{"method":"POST","target":"/1024","fields":[["Accept","*/*"]],"content":[104,105]},
        "size":1024,"duration":{"secs":60,"nanos":0},"timeout":{"secs":5,"nanos":0},
        "cell":{"matrix":"","connections":100,"rate":300.0}}"#;

    #[test]
    fn loads_of_older_runs_are_read() {
        let load: LoadSpec = serde_json::from_str(CLOSED).unwrap();
        let minute = Duration::from_secs(60);
        let closed = FlowSpec::new(50, ArrivalsSpec::Closed);
        let asleep = LoadSpec { spin: Spin::OFF, ..LoadSpec::new("closed", closed, 2 * minute) };
        assert_eq!(load, asleep);

        let load: LoadSpec = serde_json::from_str(MUCH).unwrap();
        assert_eq!((load.rate(), load.asking(), load.held()), (Some(300.0), 100, 1000));
        assert_eq!(load.spacing, Spacing::Burst { size: 100 });
        assert_eq!(load.lifetime, Lifetime::Requests(10));
        let tls = load.tls.as_ref().unwrap();
        assert_eq!(tls.versions, [TlsVersion::V1_2]);
        assert_eq!(tls.resumption, Resumption::Ratio(0.8));
        assert_eq!(load.request().unwrap().content, b"hi");
        assert_eq!((load.size, load.timeout), (Some(1024), Duration::from_secs(5)));
        assert_eq!(load.cell.as_ref().unwrap().rate, Some(300.0));

        let shares = CLOSED.replace(r#""closed","conn"#, r#"{"share_of_slowest":0.6},"conn"#);
        let load: LoadSpec = serde_json::from_str(&shares).unwrap();
        assert_eq!(load.arrivals, ArrivalsSpec::ShareOfSlowest(0.6));
    }

    #[test]
    fn loads_are_written_and_read_back() {
        let mut load: LoadSpec = serde_json::from_str(MUCH).unwrap();
        load.main.assignment = Assignment::PerConnection;
        load.main.pipeline = 4;
        load.spin = Spin::For(Duration::from_micros(50));
        let text = serde_json::to_string(&load).unwrap();
        assert_eq!(serde_json::from_str::<LoadSpec>(&text).unwrap(), load);
        let without = text.replace("\"main\"", "\"other\"");
        assert!(serde_json::from_str::<LoadSpec>(&without).is_err());
    }
}
