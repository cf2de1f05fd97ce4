//! Sentences about the growth of resources.

use weir_analysis::findings::{Bends, GrowthFindings, ResourceGrowth, Shape, UnknownGrowth};
use weir_limits::{Absent, Divisor, Figure, Input, Resource};
use weir_sentences::growth::describe;

use super::Row;

fn resource(resource: Resource, shape: Shape) -> ResourceGrowth {
    ResourceGrowth {
        resource,
        quantity: String::new(),
        unit: "CPUs".to_owned(),
        shape,
        linear: shape.is_linear(),
        slope: None,
        intercept: None,
        bend: None,
        points: Vec::new(),
        why_unknown: None,
    }
}

fn unknown(of: Resource, why: UnknownGrowth) -> ResourceGrowth {
    ResourceGrowth { why_unknown: Some(why), ..resource(of, Shape::Unknown) }
}

fn say(resources: &[ResourceGrowth]) -> String {
    describe(&GrowthFindings {
        arm: "stock".to_owned(),
        loads: vec!["open".to_owned()],
        windows: 30,
        rates: (100.0, 500.0),
        in_turns: true,
        resources: resources.to_vec(),
    })
}

fn linear(of: Resource) -> ResourceGrowth {
    resource(of, Shape::Linear)
}

fn level(of: Resource) -> ResourceGrowth {
    resource(of, Shape::Constant)
}

fn turns(of: Resource) -> ResourceGrowth {
    unknown(of, UnknownGrowth::InTurns)
}

fn absent(reason: Absent) -> String {
    say(&[unknown(Resource::Memory, UnknownGrowth::Absent(reason))])
}

pub(super) fn rows() -> Vec<Row> {
    use Resource::{Connections, Cpu, Memory, Network};
    let bend = Bends { at: (300.0, (289.0, 312.4)), before: 0.1, after: 0.5, value: 0.03 };
    let bend = ResourceGrowth { bend: Some(bend), ..resource(Cpu, Shape::Bend) };
    let column = "processes.resident_bytes".to_owned();
    let table = "processes".to_owned();
    let denied = Absent::Missing { column: column.clone(), why: "no permission".to_owned() };
    vec![
        ("One resource grows linearly", say(&[linear(Cpu)])),
        ("Connections grow linearly", say(&[linear(Connections)])),
        (
            "Two quantities of one resource, of which the first counts",
            say(&[linear(Cpu), level(Cpu)]),
        ),
        (
            "Two resources grow, one does not, and one is unknown",
            say(&[linear(Cpu), turns(Memory), linear(Network), level(Connections)]),
        ),
        ("Nothing grows", say(&[level(Cpu), level(Memory)])),
        ("One resource grows along a curve", say(&[resource(Memory, Shape::Curve)])),
        (
            "Two resources grow along curves",
            say(&[resource(Cpu, Shape::Curve), resource(Memory, Shape::Curve)]),
        ),
        ("The growth bends", say(&[bend, linear(Network)])),
        ("Two resources are unknown for one reason", say(&[turns(Cpu), turns(Memory)])),
        (
            "Two resources are unknown for two reasons",
            say(&[turns(Cpu), unknown(Memory, UnknownGrowth::Varies)]),
        ),
        ("Too few windows", say(&[unknown(Cpu, UnknownGrowth::TooFewWindows(18))])),
        ("A table that cannot be read", absent(denied)),
        ("A column without samples", absent(Absent::NotSampled(column.clone()))),
        ("A column with one sample", absent(Absent::SampledOnce(column.clone()))),
        ("A counter that went back", absent(Absent::WentBack(column.clone()))),
        ("Processes that came or went", absent(Absent::CameOrWent(table.clone()))),
        ("A clock that stood still", absent(Absent::Clock(table.clone()))),
        (
            "A proxy that weir did not start",
            absent(Absent::NotGiven(Input::Figure(Figure::ProxyCpus))),
        ),
        ("A share of no requests", absent(Absent::OfNothing(Divisor::Requests))),
        (
            "A share of columns that are zero",
            absent(Absent::OfNothing(Divisor::Columns(column.clone()))),
        ),
        (
            "A share of another quantity that is zero",
            absent(Absent::OfNothing(Divisor::Quantity("cpu_all".to_owned()))),
        ),
    ]
}
