#include "server/report/page/run_facts.h"

#include <doctest/doctest.h>

#include <string>

#include "core/config/document.h"

namespace fedge::server {
namespace {

Facts facts_of(const std::string& run_file, const RunCircumstances& circumstances = {}) {
  const auto document = config::parse_toml(run_file, "run.toml");
  REQUIRE(document);
  const auto config = run::read_run_config(*document);
  REQUIRE_MESSAGE(config, config.error().message);
  return run_facts(*config, circumstances);
}

std::string value(const Facts& facts, const std::string& name) {
  for (const auto& [key, text] : facts)
    if (key == name) return text;
  return "absent";
}

}  // namespace

TEST_CASE("run facts: values are written as in the run file") {
  const Facts facts = facts_of(R"(
[run]
name = "a"
rounds = 1200
seed = 7
[data]
dataset = "fashion-mnist"
partition = { kind = "dirichlet", alpha = 0.3, clients = 20 }
[model]
kind = "mlp"
hidden = [200, 100]
[training]
optimizer = { kind = "sgd", learning_rate = 0.05 }
local_epochs = 2
batch_size = 32
[sampling]
kind = "uniform"
clients_per_round = 10
[strategy]
kind = "fedprox"
)",
                               {.parameters = 178'110, .version = "1.2.3"});
  CHECK(facts == Facts{{"Strategy", "fedprox"},
                       {"Model", "mlp, hidden [200, 100], 178,110 parameters"},
                       {"Data set", "fashion-mnist"},
                       {"Partition", "dirichlet, alpha 0.3, 20 clients"},
                       {"Sampler", "uniform, 10 clients per round"},
                       {"Learning rate", "0.05"},
                       {"Local training", "sgd, 2 local epochs, batch size 32"},
                       {"Rounds", "1,200"},
                       {"Seed", "7"},
                       {"Program version", "Fedge 1.2.3"}});
}

TEST_CASE("run facts: a key that is left out has its default, and what is not known is left out") {
  const Facts facts = facts_of("[run]\nrounds = 1\n");
  CHECK(value(facts, "Strategy") == "fedavg");
  CHECK(value(facts, "Model") == "mlp, hidden [200, 200]");
  CHECK(value(facts, "Partition") == "iid, 10 clients");
  CHECK(value(facts, "Program version") == "absent");
  CHECK(value(facts, "Privacy") == "absent");
}

TEST_CASE("run facts: what is particular to a kind is shown with it") {
  const Facts shards = facts_of(R"(
[run]
rounds = 1
[data]
validation = 0.1
partition = { kind = "shards", shards_per_client = 3, clients = 4 }
[model]
kind = "cnn"
[training]
local_steps = 1
optimizer = { kind = "adamw" }
[sampling]
clients_per_round = 1
[strategy]
kind = "fedbuff"
schedule = { buffer_size = 5 }
)");
  CHECK(value(shards, "Partition") == "shards, 3 shards per client, 4 clients");
  CHECK(value(shards, "Evaluation") == "validation samples, 0.1 of the training samples");
  CHECK(value(shards, "Model") == "cnn, channels [32, 64], dense 512");
  CHECK(value(shards, "Local training") == "adamw, 1 local step, batch size 20");
  CHECK(value(shards, "Learning rate") == "0.001");
  CHECK(value(shards, "Sampler") == "uniform, 1 client per round");
  CHECK(value(shards, "Strategy") == "fedbuff, buffer of 5 updates");
}

TEST_CASE("run facts: the privacy of a run is among them") {
  const Facts facts = facts_of(R"(
[run]
rounds = 2
[data]
partition = { kind = "iid", clients = 100 }
[sampling]
kind = "poisson"
clients_per_round = 20
[differential_privacy]
kind = "central"
epsilon = 4.0
delta = 1e-5
)");
  CHECK(value(facts, "Privacy") == "central differential privacy, epsilon at most 4, delta 1e-05");
}

}  // namespace fedge::server
