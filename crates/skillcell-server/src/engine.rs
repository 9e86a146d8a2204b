//! What makes calls. The daemon asks, and knows nothing of cells.

use crate::api::Call;
use crate::cancel::Cancel;
use skillcell_supervisor::{Interaction, Outcome};
use std::time::Duration;

/// Makes calls, each in a cell of its own.
///
/// Methods block, and are called from many threads at once, one per connection. Whatever happens to
/// a call, there is an outcome; only a call that was never begun may have none.
pub trait Engine: Send + Sync {
    /// Makes one call. When `cancel` becomes readable nobody waits any more: the call must end soon,
    /// and nothing of it may be left when this returns. `ui` never blocks.
    fn run(&self, call: &Call, ui: &dyn Interaction, cancel: &Cancel) -> Result<Outcome, Busy>;

    /// What it counts, for `/metrics`.
    fn metrics(&self) -> EngineMetrics;

    /// No calls will come any more but those that run already: what is kept ahead may go. When this
    /// returns nothing is being made ahead.
    fn drain(&self);
}

/// The call was not begun, because there are as many as the engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// When another attempt makes sense.
    pub retry_after: Duration,
}

#[derive(Debug, Clone, Default)]
pub struct EngineMetrics(pub Vec<Metric>);

/// One value. The name is without the prefix that all of the daemon's share.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    pub kind: MetricKind,
    /// What tells values of one name apart.
    pub label: Option<(&'static str, String)>,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
}
