#include "server/engine/make_engine.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/check.h"
#include "learn/task.h"
#include "protocol/codecs/raw_size.h"
#include "protocol/codecs/selection.h"
#include "server/engine/buffered/buffered_engine.h"
#include "server/engine/round_engine.h"

namespace fedge::server {

namespace {

// Checks that a warm-up among clients_per_round members can be completed.
Result<void> check_warmup(const RunState& state) {
  const run::RunConfig& config = state.config();
  if (!config.dissemination.warmup) return {};
  const std::uint64_t values = state.layout()->trainable().count();
  const protocol::Compression& format = config.compression.format;
  const std::uint64_t bytes = protocol::raw_size_bounds(format.codec, format.levels, values).max;
  const std::size_t chunks = (bytes + config.chunk_size - 1) / config.chunk_size;
  const auto warmup = run::warmup_of(*config.dissemination.warmup, config.sampling.clients_per_round, chunks);
  if (!warmup) return warmup.error();
  return {};
}

// Checks that max_participations, divided among the tracks, suffices for all rounds.
Result<void> check_participation(const RoundRules& rules, const TrackBook& tracks, std::size_t clients) {
  if (rules.max_participations == UINT64_MAX) return {};
  const std::size_t sharing = tracks.tracks_within(rules.rounds);
  const auto wanted = std::ceil(static_cast<double>(rules.clients_per_round) * rules.over_selection);
  const std::uint64_t each = rules.max_participations / sharing;
  if (wanted * rules.rounds <= static_cast<double>(clients) * static_cast<double>(each)) return {};
  return invalid("differential_privacy.max_participations: " + std::to_string(rules.max_participations) +
                 " divided among " + std::to_string(sharing) + " tracks allows each of " +
                 std::to_string(clients) + " clients " + std::to_string(each) +
                 " rounds of a track, too few for " + std::to_string(rules.rounds) +
                 " rounds (run.rounds) with " + std::to_string(static_cast<std::uint64_t>(wanted)) +
                 " clients each; raise it");
}

// Largest size in bytes of an update of `values` values, before zstd. kept: the fraction that is sent; 0: as
// the run file says.
double largest_update(const protocol::Compression& format, std::size_t values, double kept) {
  if (format.codec != protocol::Codec::kSparse)
    return static_cast<double>(protocol::raw_size_bounds(format.codec, format.levels, values).max);
  const double fraction = kept > 0 ? kept : format.fraction;
  return static_cast<double>(protocol::sparse_size_max(values, protocol::kept_values(fraction, values)));
}

aggregation::PlannerContext planner_context(const RunState& state) {
  const run::RunConfig& config = state.config();
  return {
      .layout = state.layout(),
      .clients = config.task.data.partition.clients,
      .rng = Rng(config.seed),
      .adapters = state.adapters(),
      .work = TrainingWork(*state.layout(), state.weight_uses()),
      .trained = [spec =
                      config.task.training](SampleCount count) { return learn::samples_seen(spec, count); },
      .update_bytes = [format = config.compression.format](
                          std::size_t values, double kept) { return largest_update(format, values, kept); }};
}

}  // namespace

Result<std::unique_ptr<RunEngine>> make_engine(const RunState& state) {
  const run::RunConfig& config = state.config();
  FEDGE_TRY_VOID(check_warmup(state));
  const aggregation::PlannerContext context = planner_context(state);
  auto planner = config.strategy.planner.make(context);
  if (!planner) return planner.error().with_prefix("strategy.planner: ");
  const aggregation::ScheduleSpec& schedule = config.strategy.schedule;
  std::unique_ptr<RunEngine> engine;
  if (schedule.buffered) {
    engine = std::make_unique<BufferedEngine>(state.rules(), schedule,
                                              Deciders{config.sampling.make(), std::move(*planner)});
    return engine;
  }
  const auto make = [sampler = config.sampling.make, plan = config.strategy.planner.make, context] {
    auto made = plan(context);
    FEDGE_CHECK(made.has_value(), "a planner that could be made once");
    return Deciders{sampler(), std::move(*made)};
  };
  TrackBook tracks(config.tracks.policy, make, {.lifting_rounds = config.tracks.lifting_rounds});
  FEDGE_TRY_VOID(check_participation(state.rules(), tracks, context.clients));
  engine = std::make_unique<RoundEngine>(state.rules(), std::move(tracks));
  return engine;
}

}  // namespace fedge::server
