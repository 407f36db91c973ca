// Comparisons of runs: how runs are grouped, what is drawn, and the files.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/simulation/comparison/curves.h"
#include "apps/simulation/comparison/figures.h"
#include "apps/simulation/comparison/groups.h"
#include "apps/simulation/comparison/page.h"
#include "core/platform/files.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::apps;
using fedge::test::contains;
using learn::test::TemporaryDirectory;

namespace {

FinishedRun run_with(std::uint64_t seed, const std::vector<double>& accuracies) {
  FinishedRun run{.directory = "d" + std::to_string(seed), .name = "run", .seed = seed};
  for (const double accuracy : accuracies) {
    server::RoundMetrics round{.round = run.rounds.size() + 1};
    round.test_accuracy = accuracy;
    round.per_class_accuracy = {accuracy, 1.0};
    round.bytes_up = 10;
    round.bytes_down = 5;
    round.virtual_seconds = static_cast<double>(seed * round.round);
    run.rounds.push_back(round);
  }
  return run;
}

std::vector<RunGroup> two_groups() {
  return {{"a & b", {run_with(1, {0.1, 0.3}), run_with(2, {0.3, 0.5, 0.9})}},
          {"other", {run_with(1, {0.2, server::kNotMeasured, 0.4})}}};
}

SweepResults results_of(const std::vector<RunGroup>& groups, const std::string& baseline) {
  Sweep sweep;
  sweep.baseline = baseline;
  Axis axis{.name = "runs"};
  std::vector<Cell> cells;
  for (const RunGroup& group : groups) {
    cells.push_back({.choices = {axis.choices.size()}, .name = group.name});
    axis.choices.push_back({group.name});
  }
  sweep.axes = {axis};
  auto results = *SweepResults::create(sweep, cells, {*parse_column("final")});
  for (std::size_t g = 0; g < groups.size(); ++g) {
    CellResults found;
    for (const FinishedRun& run : groups[g].runs)
      found.runs.push_back({.seed = run.seed, .values = {results.columns()[0].value(run)}});
    results.add(g, found);
  }
  return results;
}

void write_run(const std::filesystem::path& directory, const std::string& strategy, int seed) {
  REQUIRE(make_directory(directory));
  REQUIRE(write_file_atomic(directory / "run.toml",
                            "[run]\nname = \"n\"\nrounds = 1\nseed = " + std::to_string(seed) +
                                "\n\n[strategy]\nkind = \"" + strategy + "\"\n"));
  REQUIRE(write_file_atomic(directory / "metrics.jsonl",
                            server::to_json(run_with(1, {0.5}).rounds.front()) + "\n"));
}

std::string refusal_of(const std::vector<std::string>& directories) {
  const auto groups = read_groups(directories);
  REQUIRE_FALSE(groups);
  return groups.error().message;
}

}  // namespace

TEST_CASE("curves: mean and deviation over the runs, for the rounds that all of them have") {
  const auto groups = two_groups();
  const auto band = band_of(groups[0], metric_quantity("virtual_seconds"), metric_quantity("accuracy"));
  CHECK(band.x == std::vector<double>{1.5, 3});
  REQUIRE(band.middle.size() == 2);
  CHECK(band.middle[0] == doctest::Approx(0.2));
  CHECK(band.high[0] - band.middle[0] == doctest::Approx(0.1414).epsilon(0.001));
  const auto single = band_of(groups[1], traffic_quantity(true, true), metric_quantity("accuracy"));
  CHECK(single.x == std::vector<double>{15, 45});  // round 2 was not evaluated
  CHECK(single.low.empty());
}

TEST_CASE("groups: runs that differ only in their seed are one group, named by what differs") {
  const TemporaryDirectory place;
  write_run(place.path() / "x" / "1", "fedavg", 1);
  write_run(place.path() / "x" / "2", "fedavg", 2);
  write_run(place.path() / "y", "fedprox", 1);
  const auto groups = read_groups({(place.path() / "x").string(), (place.path() / "y").string()});
  REQUIRE_MESSAGE(groups, groups.error().message);
  REQUIRE(groups->size() == 2);
  CHECK((*groups)[0].name == "fedavg");
  CHECK((*groups)[0].runs.size() == 2);
  CHECK((*groups)[1].name == "fedprox");
}

TEST_CASE("groups: a sweep's cells are its groups, in its order") {
  const TemporaryDirectory place;
  write_run(place.path() / "a" / "1", "fedavg", 1);
  write_run(place.path() / "b" / "1", "fedavg", 1);
  REQUIRE(write_file_atomic(place.path() / "cells.toml",
                            "cells = [{ choices = [\"B\", \"0.1\"], runs = [\"b/1\"] }, { choices = [\"A\", "
                            "\"1\"], runs = [\"a/1\"] }]\n"));
  const auto groups = read_groups({place.path().string()});
  REQUIRE(groups);
  REQUIRE(groups->size() == 2);
  CHECK((*groups)[0].name == "B, 0.1");
  CHECK((*groups)[1].runs.front().directory == place.path() / "a" / "1");
}

TEST_CASE("groups: directories without results, runs given twice and broken files are refused by name") {
  const TemporaryDirectory place;
  CHECK(contains(refusal_of({(place.path() / "absent").string()}), "absent"));
  REQUIRE(make_directory(place.path() / "empty"));
  CHECK(contains(refusal_of({(place.path() / "empty").string()}), "has no results of a run"));
  write_run(place.path() / "x", "fedavg", 1);
  const std::string run = (place.path() / "x").string();
  CHECK(contains(refusal_of({run, run}), "is given twice"));
  REQUIRE(write_file_atomic(place.path() / "x" / "metrics.jsonl", "{"));
  CHECK(contains(refusal_of({run}), "has no round"));
  REQUIRE(write_file_atomic(place.path() / "cells.toml", "cells = 3\n"));
  CHECK(contains(refusal_of({place.path().string()}), "cells.toml: `cells` is not a list"));
}

TEST_CASE("comparison figures: those with data, each a complete file with its style and escaped names") {
  const auto figures = comparison_figures(two_groups());
  std::vector<std::string> files;
  for (const ComparisonFigure& figure : figures) {
    files.push_back(figure.file);
    CHECK(figure.svg.starts_with("<svg xmlns="));
    CHECK(figure.svg.ends_with("</svg>"));
    CHECK(contains(figure.svg, "<style>"));
    CHECK(contains(figure.svg, "a &amp; b"));
    CHECK_FALSE(contains(figure.svg, "nan"));
  }
  const std::vector<std::string> expected = {
      "accuracy-over-rounds",    "accuracy-over-virtual-time",    "accuracy-over-upload",
      "accuracy-over-traffic",   "final-accuracy-against-upload", "final-accuracy-against-virtual-time",
      "final-accuracy-per-class"};
  for (std::size_t i = 0; i < files.size(); ++i) CHECK_MESSAGE(i < expected.size(), files[i]);
  CHECK(files == expected);
}

TEST_CASE("comparison files: page, LaTeX table and curves have the numbers of the runs") {
  const auto groups = two_groups();
  const auto results = results_of(groups, "other");
  const std::string page = comparison_page("T <1>", results, groups, comparison_figures(groups));
  CHECK(contains(page, "<h1>T &lt;1&gt;</h1>"));
  CHECK(contains(page, "<td>a &amp; b</td><td>2</td><td>38.33 ± 25.93</td>"));
  CHECK(contains(page, "<h2>Minus other"));
  CHECK(contains(page, "Content-Security-Policy"));
  CHECK_FALSE(contains(page, "http://localhost"));
  const std::string table = latex_table(results);
  CHECK(contains(table, "\\begin{tabular}{lr}"));
  CHECK(contains(table, "group & final accuracy, \\% \\\\"));
  CHECK(contains(table, "a \\& b & $38.33 \\pm 25.93$ \\\\"));
  const std::string curves = curves_csv(groups);
  CHECK(contains(curves, "group,round,runs,test_accuracy,test_accuracy_sd,"));
  CHECK(contains(curves, "a & b,1,2,0.2,0.1414213562373"));
  CHECK(contains(curves, "other,2,1,,,"));
}

TEST_CASE("groups: clients that never took part count among the clients of a run") {
  const TemporaryDirectory place;
  write_run(place.path() / "x", "fedavg", 1);
  const auto file = place.path() / "x" / "run.toml";
  REQUIRE(write_file_atomic(file, *read_file(file, 1 << 20) + "\n[data.partition]\nclients = 5\n"));
  auto participants = *sim::Participants::open(place.path() / "x", 0);
  for (const std::uint32_t client : {3U, 1U, 3U})
    participants.add(sim::Participants::Training{.client = ClientId(client)});
  REQUIRE(participants.end_round());
  const auto groups = read_groups({(place.path() / "x").string()});
  REQUIRE_MESSAGE(groups, groups.error().message);
  CHECK((*groups)[0].runs[0].clients.trainings == std::vector<double>{0, 0, 0, 1, 2});
}

TEST_CASE("groups: two runs of the same settings and seed are not two samples") {
  const TemporaryDirectory place;
  write_run(place.path() / "x", "fedavg", 1);
  write_run(place.path() / "copy", "fedavg", 1);
  CHECK(contains(refusal_of({(place.path() / "x").string(), (place.path() / "copy").string()}),
                 "have the same settings and seed"));
}

TEST_CASE("groups: groups of two sweeps with the same name are told apart by their sweeps") {
  const TemporaryDirectory place;
  for (const char* sweep : {"s1", "s2"}) {
    write_run(place.path() / sweep / "a" / "1", sweep, 1);
    REQUIRE(write_file_atomic(place.path() / sweep / "cells.toml",
                              "cells = [{ choices = [\"fedavg\"], runs = [\"a/1\"] }]\n"));
  }
  const std::string first = (place.path() / "s1").string();
  const auto groups = read_groups({first, (place.path() / "s2").string()});
  REQUIRE(groups);
  CHECK((*groups)[0].name == first + ": fedavg");
  CHECK((*groups)[0].name != (*groups)[1].name);
}

TEST_CASE("comparison page: a run that has not ended is named with the rounds that it has") {
  auto groups = two_groups();
  for (RunGroup& group : groups)
    for (FinishedRun& run : group.runs) run.complete = true;
  CHECK_FALSE(contains(comparison_page("t", results_of(groups, "other"), groups, {}), "has not ended"));
  groups[0].runs[0].complete = false;
  CHECK(contains(comparison_page("t", results_of(groups, "other"), groups, {}),
                 "a &amp; b, seed 1, has not ended:</b> its values are those of its first 2 rounds."));
}

TEST_CASE("comparison page: a run that failed is named with its reason") {
  auto groups = two_groups();
  groups[0].runs[1].failure = "the loss is not finite since round 2";
  const std::string page = comparison_page("t", results_of(groups, "other"), groups, {});
  CHECK(contains(page, "a &amp; b, seed 2, failed:</b> the loss is not finite since round 2."));
}
