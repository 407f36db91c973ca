// Sites whose samples have values, labels or points to predict: processes with secure sums, and the simulator
// with and without them, make the same model and the same evaluation.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/integration/operation/sites.h"

using namespace fedge;
using test::check_same;
using test::Sites;

namespace {

std::string rows_of(int number) {
  Rng rng = Rng(3).fork("targets", static_cast<std::uint64_t>(number));
  std::string text = "age,dose,hot,tired,state\n";
  for (int i = 0; i < 32 + 8 * number; ++i) {
    const auto age = static_cast<int>(20 + rng.below(60));
    const bool hot = rng.below(60) + 20 < static_cast<std::uint64_t>(age);
    text += std::to_string(age) + "," + std::to_string(3000 + 40 * age + static_cast<int>(rng.below(200)));
    text += std::string(hot ? ",1" : ",0") + (rng.below(2) == 0 ? ",1" : ",0") + (hot ? ",b\n" : ",a\n");
  }
  return text;
}

std::string with_data(const std::string& keys) {
  std::string run = test::kRunFile;
  const auto begin = run.find("[data]");
  run.replace(begin, run.find("[model]") - begin,
              "[data]\ndataset = \"csv\"\nname = \"patients\"\nnumeric = [\"age\"]\n"
              "normalise = \"federated\"\npartition = { kind = \"own\", clients = 4 }\n"
              "split = { test = 0.25 }\n" +
                  keys + "\n");
  return run;
}

}  // namespace

TEST_CASE("own targets: values, labels and points are trained and evaluated alike everywhere") {
  std::string keys;
  SUBCASE("values") { keys = "task = \"regression\"\ntarget_columns = [\"dose\"]\n"; }
  SUBCASE("labels") { keys = "task = \"multi-label\"\ntarget_columns = [\"hot\", \"tired\"]\n"; }
  SUBCASE("points") {
    keys = "task = \"segmentation\"\ntarget = \"state\"\nclasses = [\"a\", \"b\"]\nwindow = 4\n";
  }
  Sites sites(with_data(keys));
  for (int i = 0; i < 4; ++i) sites.write("sites/site" + std::to_string(i) + ".csv", rows_of(i));
  const std::vector<std::string> masked = {"secure_aggregation={kind=\"exact\"}"};
  const auto clear = sites.simulated({});
  const auto [simulated, real] = sites.simulated_and_real(masked);
  REQUIRE(clear.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    check_same(simulated[i], real[i]);
    CHECK(clear[i].model_hash == real[i].model_hash);
    const auto& one = *real[i].evaluation;
    CHECK(one.clients == 4);
    CHECK(one.loss == clear[i].evaluation->loss);
    const bool values = keys.find("regression") != std::string::npos;
    CHECK(std::isnan(one.accuracy) == values);
    CHECK(std::isfinite(one.rmse) == values);
    if (values) {
      CHECK(one.rmse > 50);  // in units of the dose, whose deviation is about 700
      CHECK(one.rmse < 2000);
      CHECK(one.rmse == clear[i].evaluation->rmse);
      CHECK(std::isfinite(clear[i].evaluation->rmse_by_client.p50));
      CHECK(std::isnan(one.rmse_by_client.p50));  // masked
    }
    CHECK(std::isfinite(one.mean_iou) == (keys.find("segmentation") != std::string::npos));
  }
}
