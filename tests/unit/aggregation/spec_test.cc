#include "aggregation/spec.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/text.h"

namespace fedge::aggregation {
namespace {

struct Specs {
  SamplingSpec sampling;
  StrategySpec strategy;
};

Result<Specs> read(const std::string& text) {
  FEDGE_TRY(document, config::parse_toml(text, "run.toml"));
  config::Reader root(document.root, "", document.name);
  Specs specs{read_sampling(root), read_strategy(root)};
  FEDGE_TRY_VOID(root.finish());
  return specs;
}

std::string error_of(const std::string& text) {
  const auto specs = read(text);
  REQUIRE_FALSE(specs);
  return specs.error().message;
}

using fedge::test::contains;

}  // namespace

TEST_CASE("spec: an empty file has the defaults") {
  const auto specs = read("");
  REQUIRE(specs);
  CHECK(specs->sampling.kind == "uniform");
  CHECK(specs->sampling.clients_per_round == 10);
  CHECK(specs->sampling.over_selection == 1.0);
  CHECK(specs->sampling.min_available == 1);
  CHECK(specs->strategy.recipe->name == std::string("fedavg"));
  CHECK(specs->strategy.aggregator_kind == "mean");
  CHECK_FALSE(specs->strategy.schedule.buffered);
  CHECK(specs->strategy.fixed_point.fraction_bits == 28);
  CHECK(specs->strategy.fixed_point.max_abs == 256.0);
}

TEST_CASE("spec: every key arrives") {
  const auto specs = read(
      "[sampling]\nkind = \"uniform\"\nclients_per_round = 50\nover_selection = 1.3\nmin_available = 20\n"
      "[strategy]\nkind = \"fedavg\"\nfraction_bits = 20\nmax_abs = 4096\n");
  REQUIRE(specs);
  CHECK(specs->sampling.clients_per_round == 50);
  CHECK(specs->sampling.over_selection == 1.3);
  CHECK(specs->sampling.min_available == 20);
  CHECK(specs->strategy.fixed_point.fraction_bits == 20);
  CHECK(specs->strategy.fixed_point.max_abs == 4096.0);
}

TEST_CASE("spec: mistakes are named with their line") {
  CHECK(contains(error_of("[sampling]\nclient_per_round = 5\n"), "clients_per_round"));
  CHECK(contains(error_of("[sampling]\n\nover_selection = 0.5\n"), "run.toml:3"));
  CHECK(contains(error_of("[sampling]\nclients_per_round = 0\n"), "sampling.clients_per_round"));
  CHECK(contains(error_of("[strategy]\nkind = \"fedavgg\"\n"), "fedavg"));
  CHECK(error_of("[strategy]\nkind = \"uniform_mean\"\n") ==
        "run.toml:2: strategy.kind: \"uniform_mean\" is an aggregator, not a strategy; set "
        "strategy.aggregator.kind = \"uniform_mean\" instead");
  CHECK(contains(error_of("[strategy]\nserver_optimizer = { learning_rate = -1 }\n"),
                 "strategy.server_optimizer.learning_rate"));
  CHECK(contains(error_of("[strategy]\nfraction_bits = 64\n"), "strategy.fraction_bits"));
  CHECK(contains(error_of("[strategy]\nmax_abs = nan\n"), "strategy.max_abs"));
}

TEST_CASE("spec: a recipe chooses its parts, and the others may be chosen beside it") {
  const auto buffered = read("[strategy]\nkind = \"fedbuff\"\nschedule = { buffer_size = 3 }\n");
  REQUIRE(buffered);
  CHECK(buffered->strategy.schedule.buffered);
  CHECK(buffered->strategy.schedule.buffer_size == 3);
  CHECK(buffered->strategy.aggregator_kind == "uniform_mean");
  CHECK(read("[strategy]\nkind = \"fedadam\"\naggregator = { kind = \"uniform_mean\" }\n"));
}

TEST_CASE("spec: a part that contradicts its recipe is refused with the way out") {
  const std::string error =
      error_of("[strategy]\nkind = \"fedadam\"\nserver_optimizer = { kind = \"sgd\" }\n");
  CHECK(contains(error, "run.toml:3"));
  CHECK(contains(error, "\"adam\""));
  CHECK(contains(error, "remove this key"));
}

TEST_CASE("spec: an option of another kind of part is refused as unknown") {
  CHECK(contains(error_of("[strategy]\nserver_optimizer = { beta1 = 0.9 }\n"), "beta1"));
}

TEST_CASE("spec: a fixed point that leaves no room for a round's samples is refused") {
  // 2^20 * 2^28 = 2^48 for a sample: capacity for 2^15 - 1 samples.
  const std::string error = error_of("[strategy]\nmax_abs = 1048576\n");
  CHECK(contains(error, "run.toml:2: strategy.max_abs"));
  CHECK(contains(error, "32767 samples"));
  CHECK(read("[strategy]\nmax_abs = 1048576\nfraction_bits = 20\n"));
}

}  // namespace fedge::aggregation
