#include "aggregation/planners/planner.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/text.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using planning::plan;
using planning::planner;

// Returns the planners that give clients shares of any model; those of adapter ranks, of blocks, of cuts and
// of energy have their own tests.
std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const PlannerKind& kind : planner_kinds())
    if (kind.traits.local_model != LocalModel::kPrefix && kind.traits.local_model != LocalModel::kBlock &&
        kind.traits.local_model != LocalModel::kSplit && !kind.traits.reads_power)
      names.emplace_back(kind.name);
  return names;
}

using fedge::test::contains;

}  // namespace

TEST_CASE(
    "planners: six give shares of any model, the first all of it, two divide adapters, one divides layers, "
    "one cuts between them, and one plans energy") {
  CHECK(planner_kinds().size() == 11);
  CHECK(kinds() ==
        std::vector<std::string>{"full", "fedplt", "random_mask", "heterofl", "fjord", "fedrolex"});
}

TEST_CASE("planners: each documents the keys it reads") {
  for (const PlannerKind& kind : planner_kinds()) {
    CAPTURE(kind.name);
    const config::Table empty;
    std::vector<config::KeyDoc> docs;
    config::Reader section(empty, "planner", "", &docs);
    (void)kind.read(section);
    CHECK(section.finish());
    std::set<std::string> paths;
    for (const config::KeyDoc& doc : docs) {
      CHECK(doc.doc.size() > 20);
      paths.insert(doc.path);
    }
    const bool full = std::string(kind.name) == "full";
    const bool fedplt = std::string(kind.name) == "fedplt";
    const bool rows = fedplt || std::string(kind.name) == "random_mask";
    if (fedplt) CHECK(paths.erase("planner.rotate") == 1);
    if (full) CHECK(paths.empty());
    if (rows)
      CHECK(paths == std::set<std::string>{"planner.capability", "planner.fractions", "planner.shares",
                                           "planner.split_output"});
    if (std::string(kind.name) == "fjord")
      CHECK(paths == std::set<std::string>{"planner.capability", "planner.fractions", "planner.shares"});
    else if (kind.traits.local_model == LocalModel::kPrefix)
      CHECK(paths == std::set<std::string>{"planner.capability", "planner.fractions", "planner.ranks"});
    else if (kind.traits.local_model == LocalModel::kBlock)
      CHECK(paths == std::set<std::string>{"planner.ends", "planner.schedule"});
    else if (kind.traits.local_model == LocalModel::kSplit)
      CHECK(paths == std::set<std::string>{"planner.blocks", "planner.capability", "planner.cut",
                                           "planner.cut_ranks", "planner.fractions", "planner.gamma",
                                           "planner.kappa", "planner.least", "planner.period",
                                           "planner.shares"});
    else if (kind.traits.reads_power)
      CHECK(paths == std::set<std::string>{"planner.anchor", "planner.energy_limit", "planner.kept",
                                           "planner.kept_exponent", "planner.min_width", "planner.power",
                                           "planner.sort_units", "planner.time_limit",
                                           "planner.width_exponent"});
    else if (!full && !rows)
      CHECK(paths == std::set<std::string>{"planner.capability", "planner.fractions", "planner.match",
                                           "planner.shares"});
  }
}

TEST_CASE(
    "planners: what runs on the client is the whole network, a slice, nested slices, or a part up to a cut") {
  const auto model = [](const std::string& name) {
    for (const PlannerKind& kind : planner_kinds())
      if (name == kind.name) return kind.traits.local_model;
    FAIL("no such planner");
    return LocalModel::kWhole;
  };
  CHECK(model("full") == LocalModel::kWhole);
  CHECK(model("fedplt") == LocalModel::kWhole);
  CHECK(model("random_mask") == LocalModel::kWhole);
  CHECK(model("heterofl") == LocalModel::kSlice);
  CHECK(model("fedrolex") == LocalModel::kSlice);
  CHECK(model("anycost") == LocalModel::kSlice);
  CHECK(model("fjord") == LocalModel::kNested);
  CHECK(model("block") == LocalModel::kBlock);
  CHECK(model("split") == LocalModel::kSplit);
}

TEST_CASE("planners: at activation 1 everybody trains everything, whatever the planner") {
  for (const auto& layout : {planning::small_mlp(), planning::small_cnn()})
    for (const std::string& kind : kinds()) {
      CAPTURE(kind);
      const auto all = planner({kind, kind == "full" ? "" : "shares = [1]\nfractions = [1]\n", layout, 3});
      for (std::uint32_t client = 0; client < 3; ++client)
        for (std::uint32_t round = 1; round < 4; ++round) {
          CHECK(plan(*all, client, round) == Coverage::all(layout->size()));
          CHECK(all->share(ClientId(client)) == 1.0);
        }
    }
}

TEST_CASE("planners: a client's share is the part of the parameters that its plans cover") {
  for (const auto& layout : {planning::small_mlp(), planning::chain({{20, 6, 5, 5}, {10, 80}, {4, 10}})})
    for (const std::string& kind : kinds()) {
      CAPTURE(kind);
      const std::string options =
          kind == "full" ? "" : "shares = [0.6, 0.2, 1]\nfractions = [0.25, 0.5, 0.25]\n";
      const auto made = planner({kind, options, layout, 12});
      for (std::uint32_t client = 0; client < 12; ++client)
        for (std::uint32_t round = 1; round < 25; ++round) {
          const Coverage coverage = plan(*made, client, round);
          REQUIRE(coverage.end() <= layout->size());
          REQUIRE(static_cast<double>(coverage.count()) / static_cast<double>(layout->size()) ==
                  made->share(ClientId(client)));
        }
    }
}

TEST_CASE("planners: a plan does not depend on the plans made before it") {
  for (const std::string& kind : kinds()) {
    CAPTURE(kind);
    const auto used = planner({kind, "", planning::small_mlp(), 8});
    std::vector<Coverage> expected;
    for (std::uint32_t client = 0; client < 8; ++client) expected.push_back(plan(*used, client, 3));
    (void)plan(*used, 2, 9);
    const auto fresh = planner({kind, "", planning::small_mlp(), 8});
    for (std::uint32_t client = 8; client-- > 0;) {
      CHECK(plan(*used, client, 3) == expected[client]);
      CHECK(plan(*fresh, client, 3) == expected[client]);
    }
  }
}

TEST_CASE("planners: runs of one seed give a client the same level, whatever the planner") {
  const auto large = [](const std::string& kind, std::uint64_t seed) {
    std::vector<bool> result;
    const auto made =
        planner({kind, "shares = [1, 0.2]\nfractions = [0.3, 0.7]\n", planning::small_mlp(), 20, seed});
    for (std::uint32_t client = 0; client < 20; ++client)
      result.push_back(made->share(ClientId(client)) == 1.0);
    return result;
  };
  const auto expected = large("fedplt", 5);
  CHECK(std::count(expected.begin(), expected.end(), true) == 6);
  for (const char* kind : {"random_mask", "heterofl", "fjord", "fedrolex"}) CHECK(large(kind, 5) == expected);
  CHECK(large("fedplt", 6) != expected);
}

TEST_CASE("planners: full leaves frozen tensors out") {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("base", {6, 5}, {.layer = 0, .trainable = false}).add("head", {10}, {.layer = 1});
  const auto full = planner({"full", "", layout, 1});
  CHECK(plan(*full, 0) == Coverage::of({{30, 40}}));
  CHECK(full->share(ClientId(0)) == 0.25);
  auto frozen = std::make_shared<ParameterLayout>();
  frozen->add("base", {6, 5}, {.trainable = false});
  CHECK(planning::error_of({"full", "", frozen, 1}) == "the model has no parameters to train");
}

TEST_CASE("planners: a model that is not made of layers is refused by its tensor's name") {
  const auto error = [](ParameterLayout layout) {
    return planning::error_of({"fedplt", "", std::make_shared<ParameterLayout>(std::move(layout)), 10});
  };
  CHECK(contains(error(std::move(ParameterLayout().add("a.weight", {5, 2}, {.trainable = false}))),
                 "tensor a.weight is not trainable"));
  CHECK(contains(
      error(std::move(ParameterLayout().add("a.weight", {5, 2}, {.order = TensorOrder::kRankMajor}))),
      "tensor a.weight belongs to adapters"));
  CHECK(contains(error(std::move(ParameterLayout().add("a.weight", {5, 2}).add("b.weight", {5, 2}))),
                 "layer 0 has two weights, a and b.weight"));
  CHECK(contains(error(std::move(ParameterLayout().add("a.weight", {5, 2}).add("a.bias", {4}))),
                 "tensor a.bias has 4 values, expected one for each of the 5 units of a"));
  CHECK(contains(error(std::move(ParameterLayout().add("scale", {5}))), "tensor scale belongs to a layer"));
  CHECK(contains(error(ParameterLayout()), "no parameters"));
}

TEST_CASE("planners: a model with the output layer alone leaves nothing to divide") {
  const auto softmax = planning::chain({{10, 4}});
  for (const char* kind : {"fedplt", "random_mask"}) {
    CHECK(contains(planning::error_of({kind, "", softmax, 10}), "nothing to divide"));
    CHECK(planning::try_planner({kind, "split_output = true\n", softmax, 10}));
  }
  for (const char* kind : {"heterofl", "fjord", "fedrolex"})
    CHECK(contains(planning::error_of({kind, "", softmax, 10}), "needs a hidden layer"));
}

}  // namespace fedge::aggregation
