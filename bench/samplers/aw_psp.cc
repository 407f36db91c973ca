// bench_aw_psp: the time that AW-PSP takes to select 1,000 clients, in processor time of one thread and as a
// ratio to uniform sampling of the same candidates. A fifth of the known clients is down in groups. Each
// measurement is a whole round's first selection: predictor, correlated failures, clusters, weights,
// probabilities and the draw. One variant keeps the latencies; the other renews every latency, so that AW-PSP
// sorts them again.
//   bench_aw_psp [name of the only row]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "aggregation/samplers/uniform.h"

namespace {

using namespace fedge;
using namespace fedge::aggregation;

constexpr std::size_t kSelected = 1000;
constexpr std::uint32_t kGroup = 50;  // clients that go down together, with similar latencies
constexpr std::size_t kLabels = 10;   // of which a client holds at most two
constexpr int kRounds = 40;
constexpr int kWarmUp = 20;  // rounds after which traces are long enough to correlate

struct Row {
  const char* name;
  AwPspOptions options;
  bool new_latencies = false;
};

void describe(AwPspSampler& sampler, std::uint32_t clients, Rng rng) {
  double of_group = 0;
  for (std::uint32_t i = 0; i < clients; ++i) {
    if (i % kGroup == 0) of_group = 1000 * rng.fork("group", i / kGroup).uniform();
    std::vector<double> labels(kLabels);
    labels[i % kLabels] = labels[i / kLabels % kLabels] = 1;
    sampler.describe(ClientId(i), {.latency_ms = of_group + 0.01 * rng.uniform(), .labels = labels});
  }
}

std::vector<Candidate> candidates_of_round(std::uint32_t clients, Rng rng) {
  std::vector<Candidate> candidates;
  bool shock = false;
  for (std::uint32_t i = 0; i < clients; ++i) {
    if (i % kGroup == 0) shock = rng.below(10) == 0;
    if (!shock && rng.below(10) > 0) candidates.push_back({ClientId(i), SampleCount(100)});
  }
  return candidates;
}

std::vector<Selected> timed(Sampler& sampler, const SelectionRequest& request, std::vector<double>& times) {
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  auto chosen = sampler.select(request);
  const std::clock_t end = std::clock();
  if (request.round.value() > kWarmUp)
    times.push_back(1e3 * static_cast<double>(end - start) / CLOCKS_PER_SEC);
  return chosen;
}

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run(const Row& row, std::uint32_t clients) {
  AwPspSampler sampler(row.options);
  UniformSampler uniform;
  const Rng rng(7);
  describe(sampler, clients, rng.fork("latency"));
  std::vector<double> times;
  std::vector<double> uniform_times;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    const auto candidates = candidates_of_round(clients, rng.fork("up", round));
    if (row.new_latencies) describe(sampler, clients, rng.fork("latency", round));
    const SelectionRequest request{RoundNumber(round), candidates, kSelected, rng.fork("sample", round)};
    timed(uniform, request, uniform_times);
    const auto chosen = timed(sampler, request, times);
    for (const Selected& choice : chosen)
      sampler.remember({.client = choice.client, .round = RoundNumber(round), .delivered = true});
  }
  const double time = median(times);
  std::printf("| %-30s | %9u | %7.2f | %7.2f | %5.1f | %4.0f |\n", row.name, clients, time, times.front(),
              time / median(uniform_times), static_cast<double>(sampler.state_bytes()) / clients);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Row> rows = {
      {"aw_psp weighted", {}},
      {"aw_psp weighted, latencies new", {}, true},
      {"aw_psp weighted, told labels", {.labels = protocol::LabelReport::kSets}},
      {"aw_psp greedy", {.selector = AwPspOptions::Selector::kGreedy, .risk = AwPspOptions::Risk::kHard}},
      {"availability",
       {.b = 0, .c = 0, .risk = AwPspOptions::Risk::kNone, .correlation = {}, .diversity = false}},
  };
  std::printf(
      "Selecting %zu, one thread; median and least of %d rounds, the median's ratio to uniform, bytes of "
      "state "
      "a client.\n\n",
      kSelected, kRounds - kWarmUp);
  std::printf("| sampler | known | ms | least | ratio | bytes |\n| --- | --- | --- | --- | --- | --- |\n");
  const std::string only = argc > 1 ? argv[1] : "";
  for (const Row& row : rows)
    if (only.empty() || only == row.name)
      for (const std::uint32_t clients : {10'000U, 100'000U, 1'000'000U}) run(row, clients);
}
