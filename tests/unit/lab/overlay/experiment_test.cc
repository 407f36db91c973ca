// Runs and comparisons: figures against numbers computed by hand, valid options, and independence of threads.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/platform/thread_pool.h"
#include "lab/overlay/comparison.h"
#include "lab/statistics.h"
#include "tests/unit/sim/overlays/networks.h"

using namespace fedge;
using namespace fedge::dht;
using namespace fedge::sim;
using namespace fedge::lab;

namespace {

OverlayRunOptions small_run(OverlayKind kind) {
  OverlayRunOptions run;
  run.overlay.kind = kind;
  run.nodes = 48;
  run.rounds = 20;
  run.join_rounds = 10;
  run.keys = 60;
  return run;
}

double figure(const std::vector<double>& figures, const char* key) {
  for (std::size_t i = 0; i < figure_names().size(); ++i)
    if (std::strcmp(figure_names()[i].key, key) == 0) return figures.at(i);
  FAIL("no such figure");
  return 0;
}

}  // namespace

TEST_CASE("overlay statistics: quantiles and Gini of numbers worked out by hand") {
  CHECK(quantile({5, 1, 4, 2, 3}, 0.5) == 3);
  CHECK(quantile({5, 1, 4, 2, 3}, 0.95) == 5);
  CHECK(quantile({7}, 0.01) == 7);
  CHECK(gini({2, 2, 2, 2}) == doctest::Approx(0));
  CHECK(gini({0, 0, 0, 8}) == doctest::Approx(0.75));
  CHECK(gini({1, 3}) == doctest::Approx(0.25));
}

TEST_CASE("overlay run: a calm network that is warm answers every lookup, and rightly") {
  for (const OverlayKind kind : kAllKinds) {
    const OverlayRunResult result = run_overlay(small_run(kind));
    CHECK(figure(result.figures, "lookups") == 200);
    CHECK(figure(result.figures, "success_percent") == 100);
    CHECK(figure(result.figures, "timeouts_per_lookup") == 0);
    CHECK(figure(result.figures, "startup_rounds") == 16);  // 10 rounds of joining and 6 of warm-up
    CHECK(figure(result.figures, "values_per_node") >= 3.0 * 60 / 48);
    CHECK(figure(result.figures, "maintenance_messages") > 0);
    CHECK(figure(result.figures, "join_messages") > 2);
    CHECK(figure(result.figures, "load_imbalance") >= 1);
    CHECK(std::isnan(figure(result.figures, "useful_percent")));
  }
}

// Invariant 8.
TEST_CASE("overlay run: the same options and seed give the same figures to the bit, whatever the threads") {
  ComparisonOptions options;
  options.run = small_run(OverlayKind::kChord);
  options.run.session_rounds = 20;
  options.run.agent_warm_rounds = 30;
  options.run.agent_cold_rounds = 10;
  options.kinds = {OverlayKind::kChord, OverlayKind::kPastry, OverlayKind::kKademlia};
  options.seeds = 2;
  ThreadPool one(1);
  ThreadPool three(3);
  const auto first = compare_overlays(options, one);
  const auto second = compare_overlays(options, three);
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].trace_hashes == second[i].trace_hashes);
    CHECK(first[i].trace_hashes[0] != first[i].trace_hashes[1]);
    for (std::size_t f = 0; f < first[i].figures.size(); ++f) {
      const double a = first[i].figures[f].mean;
      const double b = second[i].figures[f].mean;
      const bool same = a == b || (std::isnan(a) && std::isnan(b));
      CHECK(same);
    }
  }
}

TEST_CASE("overlay run: a lookup is useful only where the publisher's agent is warm") {
  OverlayRunOptions run = small_run(OverlayKind::kPastry);
  run.rounds = 100;
  run.agent_warm_rounds = 5;
  run.agent_cold_rounds = 15;
  const OverlayRunResult result = run_overlay(run);
  CHECK(figure(result.figures, "success_percent") == 100);
  // Expected: a quarter of the time. 60 agents over 100 rounds with mean phases of 10 are about 300
  // independent draws.
  CHECK(std::abs(figure(result.figures, "useful_percent") - 25) < 4 * 100 * std::sqrt(0.25 * 0.75 / 300));
}

TEST_CASE("overlay run: as many nodes are up under churn as are asked for, in the mean") {
  OverlayRunOptions run = small_run(OverlayKind::kPastry);
  run.static_tables = true;
  run.nodes = 200;
  run.rounds = 200;
  run.session_rounds = 50;
  CHECK(check_run(run));
  const OverlayRunResult result = run_overlay(run);
  CHECK(figure(result.figures, "success_percent") > 90);
  CHECK(figure(result.figures, "join_messages") > 0);
}

TEST_CASE("overlay comparison: at one budget the overlays' maintenance costs as much") {
  ComparisonOptions options;
  options.run = small_run(OverlayKind::kChord);
  options.run.static_tables = true;
  options.run.nodes = 100;
  options.run.rounds = 60;
  options.kinds = {OverlayKind::kChord, OverlayKind::kPastry, OverlayKind::kKademlia};
  options.seeds = 2;
  options.messages_per_round = 5;
  Sequential threads;
  for (const OverlayColumn& column : compare_overlays(options, threads)) {
    std::vector<double> means;
    for (const SampleSummary& interval : column.figures) means.push_back(interval.mean);
    CHECK(figure(means, "maintenance_messages") == doctest::Approx(5).epsilon(0.1));
    CHECK(column.pilots >= 1);
  }
}

// The fault "bad options".
TEST_CASE("overlay run: a bad option is refused with its name and what would be right") {
  const auto refused = [](auto change) {
    OverlayRunOptions run;
    change(run);
    const auto checked = check_run(run);
    REQUIRE(!checked);
    return checked.error().message;
  };
  CHECK(refused([](auto& run) { run.nodes = 0; }) == "--nodes must be 1 to 100000");
  CHECK(refused([](auto& run) { run.overlay.loss = 1; }) ==
        "--loss must be a probability of at least 0 and below 1");
  CHECK(refused([](auto& run) { run.overlay.loss = std::nan(""); }).starts_with("--loss"));
  CHECK(refused([](auto& run) { run.overlay.replication = 9; }) == "--replication must be 1 to 8");
  CHECK(refused([](auto& run) { run.overlay.chord.successors = 2; }).starts_with("--successors"));
  CHECK(refused([](auto& run) { run.overlay.pastry.digit_bits = 3; }).starts_with("--digit-bits"));
  CHECK(refused([](auto& run) { run.overlay.pastry.leaf_set = 15; }).starts_with("--leaf-set"));
  CHECK(refused([](auto& run) { run.overlay.kademlia.k = 2; }).starts_with("--k must"));
  CHECK(refused([](auto& run) { run.overlay.kademlia.alpha = 0; }).starts_with("--alpha"));
  CHECK(refused([](auto& run) { run.overlay.maintenance_scale = 0; }).starts_with("--maintenance-scale"));
  CHECK(refused([](auto& run) { run.session_rounds = 0.5; }).starts_with("--session-rounds"));
  CHECK(refused([](auto& run) { run.availability = 0; }).starts_with("--availability"));
  CHECK(refused([](auto& run) { run.keys = 0; }).starts_with("--keys"));
  CHECK(refused([](auto& run) { run.agent_cold_rounds = 1; }).starts_with("--agent-warm-rounds"));
  CHECK(check_run({}));
  CHECK(!overlay_kind("can"));
  CHECK(overlay_kind("pastry").value() == OverlayKind::kPastry);
}
