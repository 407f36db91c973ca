// The cost of resolving a policy into tracks: n clients with k exclusions each, one disagreement a client. In
// a ring, each client excludes the next k, and all patterns differ; otherwise all exclude the same k. Two
// yardsticks: a copy of the lists of exclusions, the least that any reader of them needs; and the same result
// with sets and maps, members counted and not listed.
//   bench_tracks [seconds for each row]
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "aggregation/tracks/resolution.h"

namespace {

using namespace fedge;
using namespace fedge::aggregation;

Policy make_policy(std::uint32_t n, std::uint32_t k, bool ring) {
  Policy policy;
  policy.clients = n;
  for (std::uint32_t c = 0; c < n; ++c) {
    Disagreement each{.kind = DisagreementKind::kInbound, .clients = {ClientId(c)}};
    for (std::uint32_t i = 1; i <= k; ++i) each.against.emplace_back(ring ? (c + i) % n : i - 1);
    std::sort(each.against.begin(), each.against.end());
    policy.disagreements.push_back(std::move(each));
  }
  return policy;
}

// Resolves with sets and maps, following the written rules.
std::uint64_t naive_load(const Policy& policy, RoundNumber round) {
  std::map<ClientId, std::set<ClientId>> exclusions;
  for (const Disagreement& each : policy.disagreements)
    if (each.is_active(round))
      for (const ClientId c : each.clients) exclusions[c].insert(each.against.begin(), each.against.end());
  std::map<std::set<ClientId>, std::vector<ClientId>> owners;
  for (std::uint32_t c = 0; c < policy.clients; ++c) owners[exclusions[ClientId(c)]].push_back(ClientId(c));
  std::uint64_t load = 0;
  for (const auto& [pattern, who] : owners) load += policy.clients - pattern.size();
  return load;
}

struct Variant {
  std::function<void()> turn;
  std::vector<double> micros;

  double median() {
    std::sort(micros.begin(), micros.end());
    return micros[micros.size() / 2];
  }
};

// Returns processor seconds of this process, which other programs change least.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

// Measures the variants in alternation.
void measure(std::span<Variant> variants, double seconds) {
  double spent = 0;
  while (spent < seconds || variants[0].micros.size() < 15)
    for (Variant& variant : variants) {
      const double took = seconds_of(variant.turn);
      variant.micros.push_back(took * 1e6);
      spent += took;
    }
}

void row(std::uint32_t n, std::uint32_t k, bool ring, double seconds) {
  const Policy policy = make_policy(n, k, ring);
  const RoundNumber round(1);
  const Exclusions exclusions = exclusions_in(policy, round);
  const Resolution expected = resolve(exclusions);
  std::uint64_t sink = 0;
  Variant variants[] = {
      {[&] { sink += exclusions_in(policy, round).edges.size(); }, {}},
      {[&] { sink += resolve(exclusions).tracks(); }, {}},
      {[&] { sink += resolve(exclusions, {.strict = true}).tracks(); }, {}},
      {[&] {
         std::vector<ClientId> copy;
         copy.reserve(exclusions.edges.size());
         for (const Disagreement& each : policy.disagreements)
           copy.insert(copy.end(), each.against.begin(), each.against.end());
         sink += copy.back().value();
       },
       {}},
      {[&] {
         if (naive_load(policy, round) != expected.load()) std::abort();
       },
       {}},
  };
  // Sets and maps are measured separately: the allocator consolidates their freed blocks during the next
  // large allocation.
  measure(std::span(variants).first(4), seconds);
  measure(std::span(variants).last(1), seconds);
  if (sink == 0) std::abort();
  const double both = variants[0].median() + variants[1].median();
  std::printf("%6u x %-3u %-5s %7zu %11.1f %9.1f %9.1f %9.1f %9.1f %11.1f %6.0f\n", n, k,
              ring ? "ring" : "same", expected.tracks(), variants[0].median(), variants[1].median(), both,
              variants[2].median(), variants[3].median(), variants[4].median(), variants[4].median() / both);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  if (!(seconds > 0 && seconds <= 600)) {
    std::fprintf(stderr, "usage: bench_tracks [seconds for each row]\n");
    return 2;
  }
  std::printf("median microseconds of processor time, 1 thread\n\n%-18s %7s %11s %9s %9s %9s %9s %11s %6s\n",
              "clients x excluded", "tracks", "normal form", "resolve", "both", "strict", "copy",
              "sets, maps", "ratio");
  for (const bool ring : {true, false})
    for (const auto& [n, k] :
         std::vector<std::pair<std::uint32_t, std::uint32_t>>{{6, 2}, {100, 10}, {1000, 50}, {10'000, 50}})
      row(n, k, ring, seconds);
  return 0;
}
