#include "server/report/page/label_figures.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace fedge::server {
namespace {

using Counts = std::vector<std::uint64_t>;
const Counts kTests = {100, 100, 100, 200};

}  // namespace

TEST_CASE("label figures: an even cover of all labels has no divergence and no variance") {
  const LabelFigures figures =
      label_figures(Counts{5, 5, 5, 5}, std::vector<double>{0.5, 0.5, 1, 0.25}, kTests);
  CHECK(figures.covered == 4);
  CHECK(figures.divergence == doctest::Approx(0));
  CHECK(figures.variance == 0);
  CHECK(figures.accuracy == doctest::Approx((50 + 50 + 100 + 50) / 500.0));
}

TEST_CASE("label figures: two labels of four, computed by hand") {
  const LabelFigures figures =
      label_figures(Counts{3, 0, 0, 1}, std::vector<double>{0.5, 0.9, 0.9, 0.25}, kTests);
  CHECK(figures.covered == 2);
  // 3/4 ln 3 + 1/4 ln 1; squares 10 / 4 less mean 1.
  CHECK(figures.divergence == doctest::Approx(0.75 * std::log(3.0)));
  CHECK(figures.variance == doctest::Approx(1.5));
  CHECK(figures.accuracy == doctest::Approx((50 + 50) / 300.0));
}

TEST_CASE("label figures: nobody covers nothing, and what was not evaluated has no accuracy") {
  const LabelFigures nobody = label_figures(Counts{0, 0, 0, 0}, std::vector<double>{1, 1, 1, 1}, kTests);
  CHECK(nobody.covered == 0);
  CHECK(std::isnan(nobody.divergence));
  CHECK(std::isnan(nobody.accuracy));
  CHECK(std::isnan(label_figures(Counts{1, 0, 0, 0}, {}, kTests).accuracy));
  CHECK(std::isnan(label_figures({}, {}, {}).covered));
}

}  // namespace fedge::server
