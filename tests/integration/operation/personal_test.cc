// Clients that keep parameters for themselves: simulator and processes make the same models and evaluations,
// in the clear and under masks; what is kept never reaches the coordinator and outlives a killed client.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "tests/integration/operation/sites.h"

using namespace fedge;
using test::check_same;
using test::Sites;

namespace {

std::vector<std::string> settings_of(const std::string& kind) {
  if (kind == "ditto") return {"training.personal={kind=\"ditto\",lambda=0.3}"};
  return {"model.personal=[\"dense2\"]", "training.personal={kind=\"" + kind + "\"}"};
}

std::vector<float> tensor_of(const Sites& sites, const std::string& results, const std::string& name) {
  const auto model = read_safetensors(sites.path(results) / "model.safetensors", 1 << 20);
  REQUIRE(model);
  const TensorInfo* tensor = model->values.layout().find(name);
  REQUIRE(tensor != nullptr);
  const auto values = std::as_const(model->values).tensor(*tensor);
  return {values.begin(), values.end()};
}

void check_alike(const server::RoundMetrics& one, const server::RoundMetrics& other) {
  check_same(one, other);
  CHECK(one.evaluation->shared_loss == other.evaluation->shared_loss);
  CHECK(one.evaluation->shared_accuracy == other.evaluation->shared_accuracy);
}

}  // namespace

TEST_CASE("personal: simulator and processes agree, in the clear and under masks") {
  std::string kind;
  SUBCASE("fedper") { kind = "fedper"; }
  SUBCASE("fedrep") { kind = "fedrep"; }
  SUBCASE("ditto") { kind = "ditto"; }
  Sites sites;
  std::vector<std::string> settings = settings_of(kind);
  const auto clear = sites.simulated(settings);
  settings.emplace_back("training.optimizer.learning_rate=0");
  sites.simulated(settings);
  const std::vector<float> first = tensor_of(sites, "simulated", "dense2.weight");
  settings.back() = "secure_aggregation={kind=\"exact\"}";
  const auto [simulated, real] = sites.simulated_and_real(settings);
  REQUIRE(clear.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    check_alike(simulated[i], real[i]);
    CHECK(clear[i].model_hash == real[i].model_hash);
    CHECK(clear[i].evaluation->loss == real[i].evaluation->loss);
    CHECK(clear[i].evaluation->shared_loss == real[i].evaluation->shared_loss);
    CHECK(real[i].evaluation->shared_loss != real[i].evaluation->loss);
  }
  // The coordinator's copy of what stays on the clients is as it began; the rest is not.
  const std::vector<float> last = tensor_of(sites, "results", "dense2.weight");
  CHECK((last == first) == (kind != "ditto"));
  CHECK(last == tensor_of(sites, "simulated", "dense2.weight"));
}
