//! The rule about recorded traces.

use weir_model::load::LeftOut;

use super::Rule;
use super::grade::{NEVER, load};
use crate::names;

pub(super) const RULE: Rule = Rule {
    name: "trace-left-out",
    compares: "lines of a recorded trace that are not sent, of all its lines",
    limits: load(0.10, NEVER),
    why: "every public server gets some percent of scans and empty connections, and they are no part of a load; where more \
          is missing, the load is not the one that was recorded, whatever the rate",
    judge: |e, grade| {
        let (arrivals, left_out) = e.recorded?;
        let (lines, kinds) = LeftOut::told(left_out);
        grade.share(lines, arrivals + lines, |_| {
            let [left, all] = [lines, arrivals + lines].map(names::count);
            format!("{left} of {all} lines of the trace are not sent: {kinds}")
        })
    },
};
