#include "lab/overlay/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace fedge::lab {
namespace {

constexpr std::size_t kPilotRounds = 60;
constexpr std::size_t kMostPilots = 6;
constexpr double kCloseEnough = 0.02;
constexpr double kLeastScale = 0.02;
constexpr double kMostScale = 1000;

double figure(const OverlayRunResult& result, const char* key) {
  const auto& names = figure_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::strcmp(names[i].key, key) == 0) return result.figures[i];
  FEDGE_CHECK(false, "no figure of that name");
}

// Finds the scale by a few corrections by the ratio, because messages are about proportional to 1 / scale.
void find_scale(OverlayRunOptions run, double wanted, OverlayColumn& column) {
  run.rounds = std::min(run.rounds, kPilotRounds);
  double scale = run.overlay.maintenance_scale;
  double best = 0;
  while (column.pilots < kMostPilots) {
    run.overlay.maintenance_scale = scale;
    const double cost = figure(run_overlay(run), "maintenance_messages");
    ++column.pilots;
    const double off = std::abs(std::log(cost / wanted));
    if (column.pilots == 1 || off < best) {
      best = off;
      column.maintenance_scale = scale;
    }
    if (off < kCloseEnough) return;
    scale = std::clamp(scale * cost / wanted, kLeastScale, kMostScale);
  }
}

}  // namespace

Result<void> check_comparison(const ComparisonOptions& options) {
  FEDGE_TRY_VOID(check_run(options.run));
  if (options.kinds.empty()) return invalid("--kind must name at least one overlay");
  if (options.seeds < 1 || options.seeds > 1000) return invalid("--seeds must be 1 to 1000");
  if (options.messages_per_round != 0 &&
      !(options.messages_per_round >= 0.1 && options.messages_per_round <= 1000))
    return invalid("--messages-per-round must be 0.1 to 1000, or 0 to keep the default periods");
  return {};
}

std::vector<OverlayColumn> compare_overlays(const ComparisonOptions& options, Parallel& threads) {
  std::vector<OverlayColumn> columns(options.kinds.size());
  threads.for_each(columns.size(), [&](std::size_t i) {
    OverlayRunOptions run = options.run;
    run.overlay.kind = columns[i].kind = options.kinds[i];
    columns[i].maintenance_scale = run.overlay.maintenance_scale;
    if (options.messages_per_round > 0) find_scale(run, options.messages_per_round, columns[i]);
  });
  std::vector<OverlayRunResult> results(columns.size() * options.seeds);
  threads.for_each(results.size(), [&](std::size_t task) {
    OverlayRunOptions run = options.run;
    const OverlayColumn& column = columns[task / options.seeds];
    run.overlay.kind = column.kind;
    run.overlay.maintenance_scale = column.maintenance_scale;
    run.seed = options.run.seed + task % options.seeds;
    results[task] = run_overlay(run);
  });
  for (std::size_t i = 0; i < columns.size(); ++i) {
    OverlayColumn& column = columns[i];
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(i * options.seeds);
    const auto last = first + static_cast<std::ptrdiff_t>(options.seeds);
    for (std::size_t f = 0; f < figure_names().size(); ++f) {
      std::vector<double> values;
      for (auto it = first; it != last; ++it) values.push_back(it->figures[f]);
      column.figures.push_back(summarise(values));
    }
    for (auto it = first; it != last; ++it) {
      column.events += static_cast<double>(it->events);
      column.wall_seconds += it->wall_seconds;
      column.trace_hashes.push_back(it->trace_hash);
    }
  }
  return columns;
}

}  // namespace fedge::lab
