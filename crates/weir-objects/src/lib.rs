//! Objects of a Kubernetes cluster that weir changes: places in them, their changes with a journal, roll-outs, conditions
//! of what a controller did not take, and kernel settings of nodes.
//!
//! `weir-kube` talks to the API server. The users' documentation is `docs/kubernetes.md`.

mod changes;
mod conditions;
mod node;
mod object_path;
mod refusals;
mod roll_out;
mod unplaced;

pub use changes::{Changes, ForeignChange, PutBack, left_by_the_dead, left_by_this_process, undo};
pub use conditions::not_taken;
pub use node::{VALUE, nodes_of, reach_nodes_by};
pub use object_path::{former_of, remove_at, set_at, split_whole};
pub use roll_out::{is_rolled_out, of_pods, replicas};
