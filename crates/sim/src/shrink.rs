//! Makes a failing run smaller: takes features and requests away one by one, and keeps the run that still fails.

use crate::options::ScenarioOptions;
use crate::runs::run;
use crate::scenario::Scenario;
use crate::world::Verdict;

/// The smallest run that was found to violate the same property as `options` does, with its verdict; `None` if the
/// run violates nothing. A run that panics is not caught here: the panic shows where.
pub fn shrink(options: &ScenarioOptions) -> Option<(ScenarioOptions, Verdict)> {
    let mut best = (options.clone(), run(options));
    let check = best.1.violations.first()?.check;
    let fails = |options: &ScenarioOptions| {
        let verdict = run(options);
        verdict.violations.iter().any(|violation| violation.check == check).then_some(verdict)
    };
    for feature in Scenario::draw(options).features {
        let mut smaller = best.0.clone();
        smaller.without.insert(feature);
        if let Some(verdict) = fails(&smaller) {
            best = (smaller, verdict);
        }
    }
    for requests in [1, 2, 3, 4, 6, 8, 12] {
        let smaller = ScenarioOptions { requests: Some(requests), ..best.0.clone() };
        if best.0.requests.is_none_or(|now| requests < now)
            && let Some(verdict) = fails(&smaller)
        {
            return Some((smaller, verdict));
        }
    }
    Some(best)
}
