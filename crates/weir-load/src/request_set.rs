//! Requests of a load, and the choice of the next one.

mod alias;

use std::sync::Arc;

use weir_model::flow::FlowSpec;
use weir_model::request::{WeightedRequest, escape};
use weir_stats::SplitMix64;

use crate::expect::{ExpectError, Expectation};
use crate::template::{Files, Template, TemplateError};
use crate::trace::Trace;

pub use alias::{AliasTable, WeightError};

/// Maximum number of requests: far above hand-written sets, and low enough to keep shares exact.
pub const MOST_REQUESTS: usize = 1 << 16;

/// Beginnings of requests with safe methods, which change nothing at the server.
const SAFE: [&[u8]; 3] = [b"GET ", b"HEAD ", b"OPTIONS "];

/// One of the requests of a load.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the request in reports.
    pub name: String,
    /// Bytes of the request, with slots.
    pub template: Template,
    /// True if the method is HEAD, so that responses have no content (RFC 9112 §6.3).
    pub head: bool,
    /// Expectation about the response; `None` if it is not checked.
    pub expect: Option<Expectation>,
}

impl Request {
    /// Renders the request with number 0.
    fn first_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.template.render(0, &mut SplitMix64::new(0), &mut bytes);
        bytes
    }
}

/// Rule for choosing the next request.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The only request.
    Single,
    /// Random choice in proportion to weights.
    Weighted(AliasTable),
    /// Index of the request for each arrival of a trace; after its end it begins again. Never empty.
    ByArrival(Arc<[u32]>),
}

/// The requests of a load; at least one.
#[derive(Debug, Clone)]
pub struct RequestSet {
    requests: Box<[Request]>,
    choice: Choice,
}

/// Reason why requests cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// There are no requests, or too many.
    #[error("{0} requests are given, and 1 to {MOST_REQUESTS} are possible")]
    Count(usize),
    /// A request is not valid.
    #[error("request {number} ({name}): {error}")]
    Template {
        /// Position of the request in the list, from 1.
        number: usize,
        /// Name of the request in reports.
        name: String,
        /// Error in the request.
        error: TemplateError,
    },
    /// An expectation about a response cannot be checked.
    #[error("request {number} ({name}), expect: {error}")]
    Expect {
        /// Position of the request in the list, from 1.
        number: usize,
        /// Name of the request in reports.
        name: String,
        /// Error in the expectation.
        error: ExpectError,
    },
    /// A weight cannot be used.
    #[error("request {number}: {error}")]
    Weight {
        /// Position of the request in the list, from 1.
        number: usize,
        /// Error in the weight.
        error: WeightError,
    },
    /// The trace names a request that does not exist: its index and the number of requests.
    #[error("the trace names request {0} of {1}")]
    Trace(u32, usize),
    /// The trace has no arrival.
    #[error("the trace is empty")]
    EmptyTrace,
}

impl SetError {
    /// Returns the position in the list, from 1, of the faulty request, if the error concerns one.
    pub fn number(&self) -> Option<usize> {
        match self {
            SetError::Template { number, .. }
            | SetError::Expect { number, .. }
            | SetError::Weight { number, .. } => Some(*number),
            SetError::Count(_) | SetError::Trace(..) | SetError::EmptyTrace => None,
        }
    }

    /// Returns advice on how to correct the error, unless it is obvious.
    pub fn hint(&self) -> Option<String> {
        match self {
            SetError::Template { error, .. } => error.hint(),
            SetError::Weight { .. } => {
                Some("leave out a request that is not to be sent".to_owned())
            }
            _ => None,
        }
    }
}

impl RequestSet {
    /// Creates a set of one request.
    pub fn single(request: Request) -> RequestSet {
        RequestSet { requests: [request].into(), choice: Choice::Single }
    }

    /// Creates a set of one request with fixed bytes. `head` is true if its method is HEAD.
    pub fn plain(bytes: Vec<u8>, head: bool) -> RequestSet {
        RequestSet::single(Request {
            name: String::new(),
            template: Template::plain(bytes),
            head,
            expect: None,
        })
    }

    /// Compiles requests from the user's specification, chosen at random by their weights. `host` is the authority for
    /// their Host fields; `files` holds the files that slots name.
    ///
    /// # Errors
    /// The first request that cannot be sent.
    pub fn weighted(
        specs: &[WeightedRequest],
        host: &str,
        files: &mut Files,
    ) -> Result<RequestSet, SetError> {
        let requests = compile(specs, host, files)?;
        let weights: Vec<f64> = specs.iter().map(|spec| spec.weight).collect();
        let table = AliasTable::new(&weights)
            .map_err(|(index, error)| SetError::Weight { number: index + 1, error })?;
        let choice = match *requests {
            [_] => Choice::Single,
            _ => Choice::Weighted(table),
        };
        Ok(RequestSet { requests, choice })
    }

    /// Compiles requests that are chosen by a trace: arrival k sends the request with the index `arrivals[k]`. Weights
    /// are ignored.
    ///
    /// # Errors
    /// The first request that cannot be sent, or an arrival without a request.
    pub fn by_arrival(
        specs: &[WeightedRequest],
        arrivals: Arc<[u32]>,
        host: &str,
        files: &mut Files,
    ) -> Result<RequestSet, SetError> {
        let requests = compile(specs, host, files)?;
        if arrivals.is_empty() {
            return Err(SetError::EmptyTrace);
        }
        if let Some(index) = arrivals.iter().find(|index| **index as usize >= requests.len()) {
            return Err(SetError::Trace(*index, requests.len()));
        }
        let choice = Choice::ByArrival(arrivals);
        Ok(RequestSet { requests, choice })
    }

    /// Compiles the requests of a flow from its description: mixed by weight, or those of its trace if it has requests.
    /// `host` is the authority for Host fields.
    ///
    /// # Errors
    /// The first request that cannot be sent.
    pub fn of_flow(
        flow: &FlowSpec,
        trace: Option<&Trace>,
        host: &str,
        files: &mut Files,
    ) -> Result<RequestSet, SetError> {
        let specs = flow.sent();
        let recorded = trace.and_then(|trace| Some((&trace.requests, trace.which.clone()?)));
        let (Some((requests, which)), Some(pattern)) = (recorded, specs.first()) else {
            return RequestSet::weighted(&specs, host, files);
        };
        let specs: Vec<_> = requests
            .iter()
            .map(|(method, target)| {
                let mut specific = pattern.clone();
                specific.request.method.clone_from(method);
                let target = escape(target.as_bytes());
                specific.request.target = String::from_utf8_lossy(&target).into_owned();
                specific
            })
            .collect();
        RequestSet::by_arrival(&specs, which, host, files)
    }

    /// Chooses the request that this arrival, counted from 0, sends; returns its index.
    #[inline]
    pub fn choose(&self, arrival: u64, random: &mut SplitMix64) -> u32 {
        match &self.choice {
            Choice::Single => 0,
            Choice::Weighted(table) => table.draw(random),
            Choice::ByArrival(indices) => indices[(arrival % indices.len() as u64) as usize],
        }
    }

    /// Returns the request with this index, as returned by [`RequestSet::choose`].
    #[inline]
    pub fn get(&self, index: u32) -> &Request {
        &self.requests[index as usize]
    }

    /// Returns the bytes of the first request with a safe method, which changes nothing at a server (RFC 9110 §9.2.1),
    /// if there is one.
    pub fn first_safe(&self) -> Option<Vec<u8>> {
        self.requests
            .iter()
            .map(Request::first_bytes)
            .find(|bytes| SAFE.iter().any(|method| bytes.starts_with(method)))
    }

    /// Returns the length of the longest request: the necessary size of a buffer for any of them, bytes.
    pub fn max_len(&self) -> usize {
        self.requests.iter().map(|one| one.template.max_len()).max().unwrap_or(0)
    }

    /// Returns true if the status code of every response is checked.
    pub fn expects_status(&self) -> bool {
        let mut all = self.requests.iter().map(|request| request.expect.as_ref());
        all.all(|expect| expect.is_some_and(Expectation::judges_status))
    }

    /// Returns true if some response is checked, so that connections need a [`crate::expect::Check`].
    pub fn expects(&self) -> bool {
        self.requests.iter().any(|request| request.expect.is_some())
    }
}

fn compile(
    specs: &[WeightedRequest],
    host: &str,
    files: &mut Files,
) -> Result<Box<[Request]>, SetError> {
    if specs.is_empty() || specs.len() > MOST_REQUESTS {
        return Err(SetError::Count(specs.len()));
    }
    let mut requests = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        let (number, name) = (index + 1, spec.title());
        let template = Template::new(&spec.request, host, files)
            .map_err(|error| SetError::Template { number, name: name.clone(), error })?;
        let expect = spec
            .expect
            .as_ref()
            .map(Expectation::new)
            .transpose()
            .map_err(|error| SetError::Expect { number, name: name.clone(), error })?;
        requests.push(Request { name, template, head: spec.request.method == "HEAD", expect });
    }
    Ok(requests.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::load::RequestSpec;

    fn build_set(weights: &[f64]) -> Result<RequestSet, SetError> {
        let specs: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(index, weight)| WeightedRequest {
                weight: *weight,
                ..WeightedRequest::single(RequestSpec::get(&format!("/{index}")))
            })
            .collect();
        RequestSet::weighted(&specs, "h", &mut Files::default())
    }

    proptest! {
        #[test]
        fn draws_follow_the_weights(
            weights in prop::collection::vec(0.1..10.0_f64, 2..20),
            seed in any::<u64>(),
        ) {
            const DRAWS: usize = 20_000;
            let set = build_set(&weights).unwrap();
            let mut random = SplitMix64::new(seed);
            let mut counts = vec![0_u32; weights.len()];
            for arrival in 0..DRAWS {
                counts[set.choose(arrival as u64, &mut random) as usize] += 1;
            }
            let sum: f64 = weights.iter().sum();
            let squares = weights.iter().zip(&counts).map(|(weight, count)| {
                let expected = DRAWS as f64 * weight / sum;
                (f64::from(*count) - expected).powi(2) / expected
            });
            let chi_square: f64 = squares.sum();
            // Mean plus six standard deviations of the distribution.
            let freedom = weights.len() as f64 - 1.0;
            let bound = freedom + 6.0 * (2.0 * freedom).sqrt() + 18.0;
            prop_assert!(chi_square < bound, "{chi_square} above {bound}");
        }
    }

    #[test]
    fn weights_that_lead_to_nothing_are_refused() {
        for (weights, said) in [
            (&[1.0, 0.0][..], "request 2: weight 0 is not above zero"),
            (&[-1.0, 1.0], "request 1: weight -1 is not above zero"),
            (&[1.0, f64::NAN], "request 2: weight NaN is not above zero"),
            (&[f64::INFINITY], "request 1: weight inf is not above zero"),
            (&[1e12, 1.0], "request 2: weight 1 is less than a 2^32nd of all weights"),
            (&[], "0 requests are given, and 1 to 65536 are possible"),
        ] {
            assert_eq!(build_set(weights).unwrap_err().to_string(), said);
        }
        assert!(build_set(&[f64::MAX, f64::MAX]).is_ok());
    }

    #[test]
    fn a_trace_says_which_request_it_is() {
        let specs: Vec<_> = ["/a", "/b", "/c"]
            .map(|target| WeightedRequest::single(RequestSpec::get(target)))
            .to_vec();
        let set = trace_set(&specs, &[2, 0, 1]).unwrap();
        let mut random = SplitMix64::new(0);
        let chosen: Vec<u32> = (0..5).map(|k| set.choose(k, &mut random)).collect();
        assert_eq!(chosen, [2, 0, 1, 2, 0]);
        let beyond = trace_set(&specs, &[0, 3]).unwrap_err().to_string();
        assert_eq!(beyond, "the trace names request 3 of 3");
        assert!(matches!(trace_set(&specs, &[]), Err(SetError::EmptyTrace)));
    }

    fn trace_set(specs: &[WeightedRequest], trace: &[u32]) -> Result<RequestSet, SetError> {
        RequestSet::by_arrival(specs, trace.into(), "h", &mut Files::default())
    }

    #[test]
    fn errors_say_which_request() {
        let mut specs = vec![WeightedRequest::single(RequestSpec::get("/")); 2];
        specs[1].request.target = "/{{sequense}}".to_owned();
        let error = RequestSet::weighted(&specs, "h", &mut Files::default()).unwrap_err();
        let words =
            "request 2 (GET /{{sequense}}): the target, character 2: `sequense` is not a slot";
        assert_eq!(error.to_string(), words);
        assert_eq!(error.hint().unwrap(), "did you mean `{{sequence}}`?");
    }

    #[test]
    fn heads_and_names_are_kept() {
        let mut spec = WeightedRequest::single(RequestSpec::get("/x"));
        spec.request.method = "HEAD".to_owned();
        let set = RequestSet::weighted(&[spec], "h", &mut Files::default()).unwrap();
        assert!(matches!(set.choice, Choice::Single) && !set.expects());
        assert!(set.get(0).head && set.get(0).name == "HEAD /x");
        let fixed = set.get(0).template.fixed();
        assert_eq!(Some(set.max_len()), fixed.map(<[u8]>::len));
    }
}
