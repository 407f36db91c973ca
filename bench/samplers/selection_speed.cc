// Selects 1,000 clients among 10,000, 100,000 and 1,000,000 with every sampler on one thread, after each
// candidate has delivered once. Prints the fastest of several selections in milliseconds, and the bytes that
// the sampler keeps for a client. The yardstick is a copy of the candidates in the same run.
//   bench_samplers [clients to select] [turns]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace {

using namespace fedge;
using namespace fedge::aggregation;

struct Variant {
  std::string name;
  SamplerFactory make;
};

// Returns the samplers that select differently from each other, with their defaults, and Poisson sampling's
// other form.
std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const SamplerKind& kind : sampler_kinds()) {
    const std::string name = kind.name;
    if (name == "psp" || name == "optimal") continue;  // these select as uniform does
    config::Table options;
    config::Reader section(options, "", "");
    variants.push_back({name, kind.read(section)});
    if (name != "poisson") continue;
    options.emplace("weights", config::Value{std::string("ipw"), ""});
    config::Reader inverse(options, "", "");
    variants.push_back({name + ", ipw", kind.read(inverse)});
  }
  return variants;
}

double milliseconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void tell_all(Sampler& sampler, const std::vector<Candidate>& pool, Rng rng) {
  for (const Candidate& candidate : pool) {
    const double loss = 3 * rng.uniform();
    sampler.remember({.client = candidate.client,
                      .round = RoundNumber(static_cast<std::uint32_t>(1 + rng.below(99))),
                      .delivered = true,
                      .samples = candidate.samples,
                      .norm = rng.uniform(),
                      .loss = loss,
                      .loss_rms = 1.1 * loss,
                      .time = seconds(60 * rng.uniform())});
  }
}

void measure(std::uint32_t clients, std::size_t count, int turns) {
  Rng rng(1);
  std::vector<Candidate> pool;
  for (std::uint32_t i = 0; i < clients; ++i) pool.push_back({ClientId(i), SampleCount(1 + rng.below(1000))});
  double copy = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < turns; ++turn)
    copy = std::min(copy, milliseconds_of([&] {
                      const std::vector<Candidate> other = pool;
                      if (other.back().client != pool.back().client) std::abort();
                    }));
  std::printf("%u candidates, copied in %.3f ms\n", clients, copy);
  for (const Variant& variant : all_variants()) {
    const auto sampler = variant.make();
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    tell_all(*sampler, pool, Rng(2));
    const std::size_t state = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    double best = std::numeric_limits<double>::infinity();
    std::size_t selected = 0;
    for (int turn = 0; turn < turns; ++turn) {
      const SelectionRequest request{RoundNumber(100), pool, count,
                                     Rng(3).fork("sample", static_cast<std::uint64_t>(turn))};
      best = std::min(best, milliseconds_of([&] { selected = sampler->select(request).size(); }));
    }
    std::printf("  %-18s %9.3f ms  %6zu selected  %5.0f bytes a client\n", variant.name.c_str(), best,
                selected, static_cast<double>(state) / clients);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 1000;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 9;
  if (count < 1 || turns < 1) {
    std::fprintf(stderr, "usage: bench_samplers [clients to select] [turns]\n");
    return 2;
  }
  for (const std::uint32_t clients : {10'000U, 100'000U, 1'000'000U})
    measure(clients, static_cast<std::size_t>(count), turns);
  return 0;
}
