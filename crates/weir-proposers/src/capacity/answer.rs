//! Conversion of a search's answer to its record.

use std::time::Duration;

use weir_model::record::{
    BurstRecord, CapacityAnswer, CapacityEnd, CapacityRecord, CeilingOf, CeilingRecord,
};
use weir_search::{Answer, Ending};

use super::arm::Searched;
use super::seen::{Frame, observed};
use super::time;

impl Frame {
    /// Returns the record of an arm's capacity; `passed` is the run's working time.
    pub(crate) fn answer(
        &self,
        arm: &Searched,
        answer: &Answer,
        passed: Duration,
    ) -> CapacityRecord {
        let study = &self.header.study;
        let ceiling = match answer.ending {
            Ending::NotSent(rate) => Some(CeilingRecord { of: CeilingOf::Generator, rate }),
            // Whatever broke below was a request that found no idle connection.
            _ if is_of_connections(arm) => arm.ceiling,
            _ if answer.is_ceiling => Some(
                arm.ceiling
                    .unwrap_or(CeilingRecord { of: CeilingOf::Generator, rate: answer.interval.1 }),
            ),
            _ => None,
        };
        CapacityRecord {
            answer: CapacityAnswer {
                arm: arm.name.clone(),
                load: study.loads[0].name.clone(),
                limits: study.capacity.clone(),
                decides: answer.decides,
                confidence: study.objective.confidence,
                low: answer.interval.0,
                high: finite(answer.interval.1, answer.interval.0),
                is_bracket: answer.is_bracket,
                scatter: answer.scatter,
                stalls: answer.stalls,
                verified: answer.held.map_or(0.0, |held| held.rate),
                held_s: answer.held.map_or(0.0, |held| held.seconds),
                broke: answer.broke.map(observed),
                carried: answer.carried.map(observed),
                fresh: answer.fresh,
                burst: answer.burst.map(|burst| BurstRecord {
                    seconds: study.search.burst.unwrap_or_default().as_secs_f64(),
                    low: burst.low,
                    high: finite(burst.high, burst.low),
                    confidence: burst.confidence,
                }),
                saturated: answer.saturated,
                floor: finite(answer.floor.get(answer.decides).copied().unwrap_or(0.0), 1.0),
                ceiling,
                seconds: answer.seconds,
                rest_s: arm.rest_s,
                connections: arm.connections,
                enough_s: match answer.ending {
                    Ending::TooShort(suffices_s) => {
                        time::enough_s(study, passed, suffices_s - answer.seconds.1)
                    }
                    _ => None,
                },
            },
            end: match answer.ending {
                Ending::Found => CapacityEnd::Found,
                Ending::Settled => CapacityEnd::Settled,
                Ending::Time => CapacityEnd::Budget,
                Ending::TooShort(suffices_s) => CapacityEnd::TooShort(suffices_s),
                Ending::Never => CapacityEnd::Never,
                Ending::NotSent(rate) => CapacityEnd::NotSent(rate),
                Ending::Broken(above) => CapacityEnd::Broken(above),
                Ending::Spoilt => CapacityEnd::Spoilt,
            },
        }
    }
}

fn is_of_connections(arm: &Searched) -> bool {
    arm.ceiling.map(|ceiling| ceiling.of) == Some(CeilingOf::Connections)
}

/// Returns `number` if it is finite, as records need, and otherwise `otherwise`: a rate that never broke is known only
/// to be as much as the held one.
fn finite(number: f64, otherwise: f64) -> f64 {
    if number.is_finite() { number } else { otherwise }
}
