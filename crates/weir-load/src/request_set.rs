//! stub
use crate::random::SplitMix64;
#[derive(Debug, Clone)]
pub struct Template(Vec<u8>);
impl Template {
    pub fn fixed(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
    pub fn render(&self, _n: u64, _r: &mut SplitMix64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0)
    }
}
#[derive(Debug, Clone)]
pub struct Request {
    pub template: Template,
    pub head: bool,
}
#[derive(Debug, Clone)]
pub struct RequestSet {
    pub requests: Vec<Request>,
}
impl RequestSet {
    pub fn single(bytes: Vec<u8>, head: bool) -> RequestSet {
        RequestSet {
            requests: vec![Request {
                template: Template(bytes),
                head,
            }],
        }
    }
    pub fn choose(&self, _n: u64, _r: &mut SplitMix64) -> u32 {
        0
    }
    pub fn longest(&self) -> usize {
        self.requests
            .iter()
            .map(|r| r.template.0.len())
            .max()
            .unwrap_or(0)
    }
}
