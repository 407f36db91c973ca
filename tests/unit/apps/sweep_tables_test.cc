// Tables of a sweep: text and CSV of numbers worked out by hand.
#include "apps/simulation/sweep/sweep_tables.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::apps;
using fedge::test::contains;

namespace {

constexpr double kNone = server::kNotMeasured;

CellResults cell_with(std::vector<std::vector<double>> rows, std::size_t failed = 0) {
  CellResults results;
  for (std::size_t i = 0; i < rows.size(); ++i)
    results.runs.push_back({.seed = i + 1,
                            .directory = "d" + std::to_string(i + 1),
                            .failed = i < failed,
                            .values = std::move(rows[i])});
  return results;
}

Sweep two_rows() {
  Sweep sweep;
  sweep.axes = {{.name = "run", .choices = {{"plain", {}}, {"better", {}}, {"a|b", {}}}}};
  sweep.baseline = "plain";
  return sweep;
}

Result<SweepResults> results_of(const Sweep& sweep, const std::vector<std::string>& texts) {
  std::vector<Column> columns;
  for (const std::string& text : texts) columns.push_back(*parse_column(text));
  return SweepResults::create(sweep, *cells_of(sweep.axes), std::move(columns));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    // Only the content of the cells is compared.
    std::string squeezed;
    for (const char c : line)
      if (c != ' ' || squeezed.empty() || squeezed.back() != ' ') squeezed += c;
    lines.push_back(squeezed);
    begin = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("sweep tables: mean and deviation by row, then differences to the baseline seed by seed") {
  auto results = *results_of(two_rows(), {"final", "upload"});
  auto tables = *SweepTables::create(results, {0}, "", 3);
  // 50, 60, 70 %, and with the same seeds 11, 12 and 13 points more.
  results.add(0, cell_with({{0.5, 1e6}, {0.6, 1e6}, {0.7, 1e6}}));
  results.add(1, cell_with({{0.61, 1e6}, {0.72, 1e6}, {0.83, 1e6}}));
  results.add(2, cell_with({{0.5, 1e6}, {0.61, 1e6}, {0.68, 1e6}}));
  const auto lines = lines_of(tables.markdown());
  REQUIRE(lines.size() == 12);
  CHECK(lines[0] == "| run | final accuracy, % | upload, MB |");
  CHECK(lines[2] == "| plain | 60.00 ± 10.00 | 1.0 ± 0.0 |");
  CHECK(lines[3] == "| better | 72.00 ± 11.00 | 1.0 ± 0.0 |");
  CHECK(lines[4] == "| a\\|b | 59.67 ± 9.07 | 1.0 ± 0.0 |");
  CHECK(contains(lines[6], "Minus \"plain\", on the same seeds"));
  // The deviation of 11, 12, 13 is 1, so half of the interval is 4.303 / sqrt(3).
  CHECK(lines[10] == "| better | **+12.00** ± 2.48 |");
  // 0, 1, -2: not significant.
  CHECK(lines[11] == "| a\\|b | -0.33 ± 3.79 |");
}

TEST_CASE("sweep tables: a line is given out once, when its cells and all lines before it are complete") {
  auto results = *results_of(two_rows(), {"final"});
  auto tables = *SweepTables::create(results, {0}, "", 1);
  CHECK(lines_of(tables.take_lines()).size() == 2);
  results.add(1, cell_with({{0.6}}));
  CHECK(tables.take_lines().empty());
  results.add(0, cell_with({{0.5}}));
  const auto lines = lines_of(tables.take_lines());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "| plain | 50.00 |");
  CHECK(lines[1] == "| better | 60.00 |");
  CHECK(tables.take_lines().empty());
  results.add(2, cell_with({{0.4}}));
  CHECK(contains(tables.take_lines(), "| -10.00"));
}

TEST_CASE("sweep tables: runs that failed or never get there are counted, not averaged away") {
  auto results = *results_of(two_rows(), {"final", "rounds_to:0.7"});
  auto tables = *SweepTables::create(results, {0}, "", 3);
  results.add(0, cell_with({{0.5, kNone}, {0.6, kNone}, {0.7, 3}}));
  results.add(1, cell_with({{kNone, kNone}, {0.6, kNone}, {0.7, kNone}}, 1));
  results.add(2, cell_with({{kNone, kNone}, {kNone, kNone}, {kNone, kNone}}, 3));
  const auto lines = lines_of(tables.markdown());
  CHECK(lines[2] == "| plain | 60.00 ± 10.00 | 1 of 3 have it |");
  CHECK(lines[3] == "| better | 1 of 3 failed | - |");
  CHECK(lines[4] == "| a\\|b | failed | failed |");
  CHECK(lines[10] == "| better | - |");
}

TEST_CASE("sweep tables: choices in columns and tables, with one figure in each cell") {
  Sweep sweep;
  sweep.axes = {{.name = "labels", .choices = {{"IID", {}}, {"skewed", {}}}, .place = Axis::Place::kTables},
                {.name = "rule", .choices = {{"mean", {}}, {"median", {}}}},
                {.name = "attack", .choices = {{"none", {}}, {"flip", {}}}, .place = Axis::Place::kColumns}};
  auto results = *results_of(sweep, {"final"});
  auto tables = *SweepTables::create(results, {0}, "", 1);
  for (std::size_t i = 0; i < 8; ++i) results.add(i, cell_with({{0.1 * static_cast<double>(i)}}));
  const auto lines = lines_of(tables.markdown());
  REQUIRE(lines.size() == 13);
  CHECK(lines[0] == "**IID: final accuracy, %**");
  CHECK(lines[2] == "| rule | none | flip |");
  CHECK(lines[4] == "| mean | 0.00 | 10.00 |");
  CHECK(lines[5] == "| median | 20.00 | 30.00 |");
  CHECK(lines[7] == "**skewed: final accuracy, %**");
  CHECK(lines[12] == "| median | 60.00 | 70.00 |");
}

TEST_CASE("sweep tables: choices in columns need exactly one column of results") {
  Sweep sweep;
  sweep.axes = {{.name = "a", .choices = {{"x", {}}, {"y", {}}}, .place = Axis::Place::kColumns}};
  auto results = *results_of(sweep, {"final", "upload"});
  const auto tables = SweepTables::create(results, {0}, "", 1);
  REQUIRE_FALSE(tables);
  CHECK(contains(tables.error().message, "exactly one column of results; `columns` has 2"));
}

TEST_CASE("sweep results: a relative column divides by the baseline's value of the same seed") {
  auto results = *results_of(two_rows(), {"relative:upload"});
  results.add(0, cell_with({{100}, {200}}));
  results.add(1, cell_with({{50}, {20}}));
  CHECK(results.values(1, 0) == std::vector<double>{0.5, 0.1});
  CHECK(results.shown(1, 0) == "30.0 ± 28.3");
  CHECK(results.shown(0, 0) == "100.0 ± 0.0");
}

TEST_CASE("sweep results: pairs are formed by seed, also if a group lacks some") {
  auto results = *results_of(two_rows(), {"final"});
  results.add(0, cell_with({{0.5}, {0.6}, {0.7}}));
  CellResults other = cell_with({{0.8}, {0.9}});
  other.runs[0].seed = 3;
  other.runs[1].seed = 4;
  results.add(1, std::move(other));
  const auto differences = results.differences(1, 0);
  CHECK(differences[0] == doctest::Approx(0.1));
  CHECK(std::isnan(differences[1]));
}

TEST_CASE("sweep results: the baseline must be a choice of exactly one axis") {
  Sweep sweep = two_rows();
  sweep.baseline = "nobody";
  CHECK(contains(results_of(sweep, {"final"}).error().message, "\"nobody\" is none of plain, better, a|b"));
  sweep.axes.push_back({.name = "other", .choices = {{"plain", {}}}});
  sweep.baseline = "plain";
  CHECK(contains(results_of(sweep, {"final"}).error().message, "a choice of several axes"));
  sweep.baseline.reset();
  CHECK(contains(results_of(sweep, {"relative:upload"}).error().message, "needs a baseline"));
}

TEST_CASE("sweep results: the CSV files have the values in the units of metrics.csv") {
  auto results = *results_of(two_rows(), {"final"});
  results.add(0, cell_with({{0.5}, {0.7}}));
  results.add(1, cell_with({{0.6}, {kNone}}, 0));
  results.add(2, cell_with({{0.5}, {0.5}}));
  const std::string runs = results.runs_csv();
  CHECK(contains(runs, "run,seed,directory,tuned,failed,final\r\n"));
  CHECK(contains(runs, "plain,2,d2,,false,0.7\r\n"));
  CHECK(contains(runs, "better,2,d2,,false,\r\n"));
  const std::string summary = results.summary_csv();
  CHECK(contains(summary, "plain,final,2,0.6,0.14142135623730948,"));
  CHECK(contains(summary, "better,final,1,0.6,,,\r\n"));
  const std::string differences = results.differences_csv();
  CHECK(contains(differences, "a|b,plain,final,2,-0.09999999999999998,0.14"));
  CHECK_FALSE(contains(differences, "plain,plain"));
}
