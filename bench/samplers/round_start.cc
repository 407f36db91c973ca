// bench_round_start: the cost of beginning a round of 1,000 clients, by the number of connected clients.
// Measures the round engine's whole step, which includes the sampler's selection, for a coordinator or the
// simulator. Every client of a round delivers. Prints the best and the median of several rounds in processor
// time of one thread, and the cost of an arrival before the first round.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/planners/planner.h"
#include "server/engine/round_engine.h"

namespace {

using namespace fedge;
using namespace fedge::server;

constexpr std::size_t kSelected = 1000;
constexpr int kRounds = 12;
constexpr std::size_t kParameters = 100;

double milliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Plans full models for all clients.
Deciders deciders(const aggregation::SamplerFactory& sampler) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {kParameters});
  const config::Table empty;
  config::Reader section(empty, "", "");
  auto planner = aggregation::planner_kinds().front().read(section).make({layout, 1'000'000, Rng(3)});
  if (!planner) std::abort();
  return {sampler(), std::move(*planner)};
}

class Coordinator {
 public:
  Coordinator(const aggregation::SamplerFactory& sampler, std::uint32_t clients)
      : rules_{.layout = sha256("layout"),
               .parameters = kParameters,
               .rounds = kRounds + 1,
               .clients_per_round = kSelected,
               .first_round_clients = clients,
               .deadline = seconds(60),
               .max_samples = SampleCount(1000)},
        engine_(rules_, TrackBook({.clients = clients}, [sampler] { return deciders(sampler); }, {})) {}

  void feed(const RunEngine::Input& input) {
    effects_.clear();
    engine_.step(input, {Time{}, rng_}, effects_);
  }

  // Delivers an update of every selected client, which closes the round.
  void carry_out_round() {
    std::vector<ClientId> asked;
    for (const auto& effect : effects_)
      if (const auto* assign = std::get_if<RunEngine::Assign>(&effect)) asked.push_back(assign->client);
    if (asked.size() != kSelected) std::abort();
    for (const ClientId client : asked) {
      protocol::UpdateOffer offer;
      offer.round = engine_.round();
      offer.update.layout = rules_.layout;
      offer.update.coverage = Coverage::all(kParameters);
      offer.samples = SampleCount(100);
      offer.steps = 1;
      feed(RunEngine::Offered{client, offer});
      feed(RunEngine::Stored{client, engine_.round()});
    }
  }

  RoundNumber round() const { return engine_.round(); }

 private:
  RoundRules rules_;
  RoundEngine engine_;
  Rng rng_{3};
  std::vector<RunEngine::Effect> effects_;
};

aggregation::SamplerFactory factory(const char* name) {
  for (const auto& kind : aggregation::sampler_kinds()) {
    const config::Table options;
    config::Reader section(options, "", "");
    if (kind.name == std::string(name)) return kind.read(section);
  }
  std::abort();
}

void measure(const char* name, std::uint32_t clients) {
  Coordinator coordinator(factory(name), clients);
  Rng latency(7);
  const double start = milliseconds();
  for (std::uint32_t c = 0; c + 1 < clients; ++c)
    coordinator.feed(RunEngine::ClientArrived{ClientId(c), SampleCount(100)});
  const double arrived = milliseconds();
  for (std::uint32_t c = 0; c < clients; ++c)
    coordinator.feed(
        RunEngine::Described{ClientId(c), {.latency_ms = 1000 * latency.uniform(), .labels = {}}});
  coordinator.feed(RunEngine::ClientArrived{ClientId(clients - 1), SampleCount(100)});
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    coordinator.carry_out_round();
    const double before = milliseconds();
    coordinator.feed(RunEngine::Committed{coordinator.round()});
    times.push_back(milliseconds() - before);
  }
  std::sort(times.begin(), times.end());
  std::printf("| `%s` | %u | %.2f | %.2f | %.2f |\n", name, clients, times[times.size() / 2], times.front(),
              1e3 * (arrived - start) / clients);
}

}  // namespace

int main() {
  std::printf("| sampler | clients there | round's start, ms | least | an arrival, us |\n");
  std::printf("| --- | --- | --- | --- | --- |\n");
  for (const char* name : {"uniform", "aw_psp"})
    for (const std::uint32_t clients : {10'000U, 100'000U, 1'000'000U}) measure(name, clients);
}
