#include "server/report/charts/chart.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/report/metrics.h"
#include "tests/support/text.h"

namespace fedge::server {
namespace {

using test::contains;
using test::count;

Chart two_lines(std::vector<double> first, std::vector<double> second) {
  return {.title = "Traffic",
          .x_title = "round",
          .y_title = "traffic",
          .y_unit = Unit::kBytes,
          .x = {1, 2, 3},
          .rounds = {1, 2, 3},
          .series = {{"download", std::move(first), 1}, {"upload", std::move(second), 2}}};
}

}  // namespace

TEST_CASE("chart: ticks stand at round numbers inside the range") {
  CHECK(ticks(0, 100, 5, false) == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(ticks(1, 50, 6, true) == std::vector<double>{10, 20, 30, 40, 50});
  CHECK(ticks(1, 3, 6, true) == std::vector<double>{1, 2, 3});
  const auto small = ticks(0.31, 0.34, 5, false);
  REQUIRE(small.size() == 4);
  CHECK(small[0] == doctest::Approx(0.31));
  CHECK(small[3] == doctest::Approx(0.34));
  CHECK(ticks(5, 5, 5, false) == std::vector<double>{5});
  for (const double high : {1e-300, 1e-5, 3.7, 1e12, 1e300}) CHECK(ticks(0, high, 5, false).size() <= 6);
  CHECK(ticks(-1e308, 1e308, 5, false).size() <= 6);  // the difference overflows
}

TEST_CASE("chart: values are shown with a fitting unit") {
  CHECK(with_unit(0.8125, Unit::kPercent) == "81.25 %");
  CHECK(with_unit(999, Unit::kBytes) == "999 B");
  CHECK(with_unit(7968400, Unit::kBytes) == "7.968 MB");
  CHECK(with_unit(0.05, Unit::kSeconds) == "50.00 ms");
  CHECK(with_unit(90, Unit::kSeconds) == "90.00 s");
  CHECK(with_unit(7200, Unit::kSeconds) == "2.000 h");
  CHECK(with_unit(0.4567, Unit::kNone) == "0.457");
  CHECK(with_unit(1e30, Unit::kNone) == "1e+30");
  CHECK(with_unit(kNotMeasured, Unit::kPercent) == "-");
}

TEST_CASE("chart: a line runs through the known points, in the picture's coordinates") {
  Chart chart{.title = "t",
              .x_title = "round",
              .y_title = "accuracy",
              .y_unit = Unit::kPercent,
              .x = {1, 2, 3},
              .rounds = {1, 2, 3},
              .series = {}};
  chart.series = {{"a", {0.0, kNotMeasured, 1.0}}};
  const std::string svg = figure(chart);
  // From the lower left to the upper right corner; the missing middle point is skipped.
  CHECK(contains(svg, "<path class=\"l s1\" d=\"M62 224L424 42\"/>"));
  CHECK(contains(svg, "round 2 · -"));
  chart.series[0].y = {kNotMeasured, kNotMeasured, kNotMeasured};
  CHECK(figure(chart).empty());
}

TEST_CASE("chart: bars stack up from zero, and long runs are drawn as means of neighbours") {
  Chart chart{.title = "t",
              .x_title = "round",
              .y_title = "clients",
              .y_unit = Unit::kCount,
              .from_zero = true,
              .bars = true,
              .x = {1, 2},
              .rounds = {1, 2},
              .series = {}};
  chart.series = {{"a", {6, 4}, 1}, {"b", {4, 6}, 2}};
  // The axis ends at 10, and the legend takes 20 units: 162 picture units are 10, and 6 reach up to 224 -
  // 97.2.
  const std::string svg = figure(chart);
  CHECK(contains(svg, " 224V126.8h40V224z"));
  CHECK(contains(svg, " 126.8V62h40V126.8z"));
  for (std::uint64_t round = 3; round <= 1000; ++round) {
    chart.x.push_back(static_cast<double>(round));
    chart.rounds.push_back(round);
    for (auto& series : chart.series) series.y.push_back(5);
  }
  const std::string many = figure(chart);
  CHECK(contains(many, "t, mean of 5"));
  CHECK(count(many, "z") >= 400);
  CHECK(many.size() < 40000);
}

TEST_CASE("chart: two lines that coincide differ in their dashes, and their labels do not overlap") {
  const std::string svg = figure(two_lines({1, 2, 3}, {1, 2, 3}));
  CHECK(contains(svg, "<path class=\"l s1 p0\" d=\"M62 224L"));
  CHECK(contains(svg, "<path class=\"l s2 p1\" d=\"M62 224L"));
  // Both lines end at the top of the axis, 42; their labels are 14 apart.
  CHECK(contains(svg, "y=\"46\" class=\"n\">download</text>"));
  CHECK(contains(svg, "y=\"60\" class=\"n\">upload</text>"));
}

TEST_CASE("chart: a series without a value has neither line nor label") {
  const std::string svg = figure(two_lines({1, 2, 3}, {kNotMeasured, kNotMeasured, kNotMeasured}));
  CHECK(count(svg, "class=\"l ") == 1);
  CHECK_FALSE(contains(svg, "upload"));
  Chart bars = two_lines({1, 2, 3}, {0, 0, 0});
  bars.bars = bars.from_zero = true;
  CHECK_FALSE(contains(figure(bars), "upload"));
  bars.series[1].y = {0, 1, 0};
  CHECK(contains(figure(bars), "upload</text>"));
}

TEST_CASE("chart: a long name is cut in its label, between characters, and whole in its tooltip") {
  Chart chart = two_lines({1, 2, 3}, {3, 2, 1});
  chart.series[0].name = std::string(16, 'a') + "\u00e9\u00e9";
  const std::string svg = figure(chart);
  CHECK(contains(svg, ">" + std::string(16, 'a') + "\u00e9\u2026</text>"));
  CHECK(contains(svg, "<title>" + chart.series[0].name + "</title>"));
}

TEST_CASE("chart: the SVG is complete in itself: namespace, style, title, description, axes with units") {
  const std::string page = figure(two_lines({1e6, 2e6, 3e6}, {2e6, 2e6, 2e6}));
  const std::string svg = page.substr(page.find("<svg"), page.find("</svg>") - page.find("<svg"));
  for (const char* part : {"xmlns=\"http://www.w3.org/2000/svg\"", "<title>Traffic</title>",
                           "<desc>traffic over round. Last value: download 3.000 MB, upload 2.000 MB.</desc>",
                           "<style>", "prefers-color-scheme: dark", ">traffic (MB)</text>", ">round</text>",
                           "class=\"t\">Traffic</text>", "class=\"bg\""}) {
    CHECK_MESSAGE(contains(svg, part), part);
  }
  CHECK_FALSE(contains(svg, "var("));
}

TEST_CASE("chart: hostile titles and names are escaped wherever they stand") {
  Chart chart = two_lines({1, 2, 3}, {3, 2, 1});
  chart.title = chart.x_title = chart.y_title = chart.series[0].name = "<b>\"&'";
  const std::string svg = figure(chart) + small_figure({"<b>\"&'", "<b>\"&'", {1, 2}, {0, 1}, {1, 1}});
  CHECK_FALSE(contains(svg, "<b>\""));
  CHECK_FALSE(contains(svg, "\"&'"));
}

}  // namespace fedge::server
