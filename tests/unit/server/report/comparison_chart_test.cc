#include "server/report/charts/comparison_chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/text.h"

using namespace fedge;
using namespace fedge::server;
using fedge::test::contains;

namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

ComparisonText percent_text() {
  return {
      .title = "Accuracy", .description = "d", .axes = {"rounds", "accuracy", Unit::kCount, Unit::kPercent}};
}

// All y coordinates of points in the paths of one kind.
std::vector<double> heights_in(const std::string& svg, const std::string& css) {
  std::vector<double> heights;
  const std::regex path("<path class=\"" + css + "[^\"]*\" d=\"([^\"]*)\"");
  const std::regex point("[ML]-?[0-9.]+ (-?[0-9.]+)|V(-?[0-9.]+)");
  for (std::sregex_iterator p(svg.begin(), svg.end(), path), end; p != end; ++p) {
    const std::string drawn = (*p)[1];
    for (std::sregex_iterator q(drawn.begin(), drawn.end(), point); q != end; ++q)
      heights.push_back(std::stod((*q)[1].matched ? (*q)[1] : (*q)[2]));
  }
  return heights;
}

}  // namespace

TEST_CASE("comparison chart: a spread that exceeds 100 % ends at the edge of the plot") {
  const std::vector<Band> bands = {{"a", {1, 2}, {0.95, 0.97}, {0.8, 0.85}, {1.4, 1.2}}};
  const std::string svg = band_chart(percent_text(), bands);
  const auto heights = heights_in(svg, "b a");
  REQUIRE(heights.size() == 4);
  const Area area = area_of(640, 400);
  for (const double height : heights) {
    CHECK(height >= area.top);
    CHECK(height <= area.bottom);
  }
  const auto bars = heights_in(category_chart(percent_text(), {"0", "1"}, bands), "w");
  REQUIRE(bars.size() == 4);
  CHECK(std::ranges::min(bars) >= area.top);
}

TEST_CASE("comparison chart: groups without values are absent, and no chart is drawn without any") {
  const std::vector<Band> none = {{"a", {1, 2}, {kAbsent, kAbsent}}};
  CHECK(band_chart(percent_text(), none).empty());
  CHECK(point_chart(percent_text(), {{"a", kAbsent, 1, 0, 0}}, {}).empty());
  CHECK(category_chart(percent_text(), {"0"}, none).empty());
  CHECK(band_chart(percent_text(), {}).empty());
}

TEST_CASE("comparison chart: names are escaped, and each group has a colour and pattern of its own") {
  std::vector<Band> bands;
  for (int g = 0; g < 28; ++g)
    bands.push_back({"<" + std::to_string(g) + ">", {1, 2}, {0.1, 0.01 * static_cast<double>(g)}});
  const std::string svg = band_chart(percent_text(), bands);
  CHECK(contains(svg, "&lt;27&gt;"));
  CHECK_FALSE(contains(svg, "<27>"));
  std::vector<std::string> styles;
  const std::regex line("<path class=\"l ([^\"]*)\" d=\"M[0-9. ]+L");
  for (std::sregex_iterator p(svg.begin(), svg.end(), line), end; p != end; ++p) styles.push_back((*p)[1]);
  REQUIRE(styles.size() == 28);
  std::ranges::sort(styles);
  CHECK(std::ranges::unique(styles).empty());
}

TEST_CASE("Pareto front: points that no other beats in both directions, by ascending cost") {
  const std::vector<Point> points = {{"a", 3, 0.9, 0, 0},
                                     {"b", 1, 0.5, 0, 0},
                                     {"beaten by a", 4, 0.8, 0, 0},
                                     {"c", 2, 0.9, 0, 0},  // beats a: the same at a lower cost
                                     {"unknown", kAbsent, 1, 0, 0}};
  CHECK(pareto_front(points) == std::vector<std::size_t>{1, 3});
  const std::vector<Point> equal = {{"a", 1, 1, 0, 0}, {"b", 1, 1, 0, 0}};
  CHECK(pareto_front(equal).size() == 2);
}
