// Rules about what clients tell of their own samples: evaluations and statistics.
#include <string>

#include "run/recipe.h"

namespace fedge::run {
namespace {

void check_statistics(const RunConfig& run, config::Reader& root) {
  if (!run.task.data.federated_normalisation) {
    if (run.privacy.statistics_noise > 0)
      root.fail("differential_privacy.statistics_noise",
                "has no effect without data.normalise = \"federated\"", {"data.normalise"});
    return;
  }
  const auto refuse = [&](const std::string& why, const char* beside) {
    root.fail("data.normalise", "federated is not possible in this run, because " + why, {beside});
  };
  if (run.strategy.schedule.buffered) refuse("it has no rounds (strategy.schedule)", "strategy.schedule");
  if (run.dissemination.serverless)
    refuse("its clients exchange models without the coordinator (dissemination)", "dissemination");
  if (run.privacy.by_clients())
    refuse(
        "its clients add the noise to their updates, but not to statistics; set data.mean and data.deviation",
        "differential_privacy.kind");
  if (!run.tracks.policy.disagreements.empty())
    refuse("clients that must not share a model would share the statistics (tracks)", "tracks");
}

void check_evaluation(const RunConfig& run, config::Reader& root) {
  if (!run.evaluation.on_clients()) return;
  if (const std::string why = no_client_evaluation(run); !why.empty())
    root.fail("evaluation.where",
              "clients cannot evaluate models in this run, because " + why + "; use \"none\"",
              {"strategy.schedule", "dissemination"});
}

}  // namespace

void check_sums(const RunConfig& run, config::Reader& root) {
  check_evaluation(run, root);
  check_statistics(run, root);
}

}  // namespace fedge::run
