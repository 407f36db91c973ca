// Planners, objectives and server optimizers of a user's own program: simulated runs use them like built-in
// ones, and a failure ends the run with an error that names the part.
#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "aggregation/planners/planner.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "learn/objectives/kinds.h"
#include "tests/support/text.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using namespace fedge::sim;
using fedge::test::contains;

namespace {

// Trains the first `part` of the model, and faults to choose from.
class FirstPart final : public aggregation::Planner {
 public:
  FirstPart(std::size_t size, double part, std::string fault)
      : size_(size), part_(part), fault_(std::move(fault)) {}
  Coverage plan(const aggregation::PlanRequest&) override {
    if (fault_ == "throws") throw std::out_of_range("index 7");
    if (fault_ == "nothing") return {};
    if (fault_ == "beyond") return Coverage::all(size_ + 1);
    return Coverage::all(static_cast<std::size_t>(part_ * static_cast<double>(size_)));
  }
  double share(ClientId) const override { return fault_ == "share" ? 2 : part_; }

 private:
  std::size_t size_;
  double part_;
  std::string fault_;
};

// The proximal term of FedProx.
class OwnProximal final : public learn::Objective {
 public:
  OwnProximal(float mu, std::string fault) : mu_(mu), fault_(std::move(fault)) {}
  void add_gradient(std::span<const float> parameters, std::span<const float> start,
                    std::span<float> gradient) const override {
    if (fault_ == "throws") throw std::out_of_range("index 7");
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += mu_ * (parameters[i] - start[i]);
    if (fault_ == "nan") gradient[0] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  float mu_;
  std::string fault_;
};

// The server optimizer sgd.
class OwnSgd final : public aggregation::ServerOptimizer {
 public:
  OwnSgd(double rate, std::string fault) : rate_(rate), fault_(std::move(fault)) {}
  void step(std::size_t, std::span<float> model, std::span<const double> aggregate) override {
    if (fault_ == "throws" && model.size() > 1) throw std::out_of_range("index 7");
    for (std::size_t i = 0; i < model.size(); ++i)
      model[i] = static_cast<float>(static_cast<double>(model[i]) + rate_ * aggregate[i]);
    if (fault_ == "nan" && model.size() > 1) model[0] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  double rate_;
  std::string fault_;
};

aggregation::PlannerPart read_first_part(config::Reader& section) {
  const double part = section.number("part", 0.5, {0.01, 1}, "Fraction of the model.");
  const std::string fault = section.text("fault", "", "Where it fails.");
  if (fault == "read") throw std::runtime_error("no option");
  return {.make = [part, fault](const aggregation::PlannerContext& context)
              -> Result<std::unique_ptr<aggregation::Planner>> {
    if (fault == "refuses") return invalid("this model cannot be divided");
    return std::unique_ptr<aggregation::Planner>(
        std::make_unique<FirstPart>(context.layout->size(), part, fault));
  }};
}

learn::ObjectiveFactory read_own_proximal(config::Reader& section, learn::ObjectiveSpec&) {
  const auto mu = static_cast<float>(section.number("strength", 0.5, {0, 10}, "Factor of the term."));
  const std::string fault = section.text("fault", "", "Where it fails.");
  return [mu, fault](const learn::ObjectiveSpec&) -> std::shared_ptr<const learn::Objective> {
    if (fault == "make") throw std::runtime_error("no table");
    return std::make_shared<OwnProximal>(mu, fault);
  };
}

aggregation::ServerOptimizerFactory read_own_sgd(config::Reader& section) {
  const double rate = section.number("rate", 0.5, {0, 10}, "Factor of the aggregate.");
  const std::string fault = section.text("fault", "", "Where it fails.");
  return [rate, fault](std::size_t) -> std::unique_ptr<aggregation::ServerOptimizer> {
    if (fault == "null") return nullptr;
    return std::make_unique<OwnSgd>(rate, fault);
  };
}

struct OwnMethods {
  learn::test::TemporaryDirectory data;
  OwnMethods() {
    test::write_tiny_dataset(data);
    static const bool registered = [] {
      aggregation::register_planner(
          {.name = "own_part", .paper = "", .summary = "", .traits = {}, .read = read_first_part});
      aggregation::register_planner({.name = "own_whole",
                                     .paper = "",
                                     .summary = "",
                                     .traits = {.whole_model = true},
                                     .read = read_first_part});
      learn::register_objective(
          {.name = "own_proximal", .paper = "", .summary = "", .read = read_own_proximal});
      aggregation::register_server_optimizer(
          {.name = "own_sgd", .paper = "", .summary = "", .read = read_own_sgd});
      return true;
    }();
    (void)registered;
  }
  Outcome run(const std::string& setting) const {
    return SimulatedRun(data.path(), setting.empty() ? Settings{} : Settings{setting}).try_run();
  }
  std::vector<std::string> hashes(const std::string& setting) const {
    const Outcome outcome = run(setting);
    REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    REQUIRE(outcome.rounds.size() == 3);
    return outcome.hashes();
  }
  std::string failure(const std::string& setting) const {
    const Outcome outcome = run(setting);
    return outcome.failure ? outcome.failure->message : "no failure";
  }
};

// The error of a run file with this text.
std::string error_of_file(const std::string& text) {
  const auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  const auto read = run::read_run_config(*document);
  return read ? std::string() : read.error().message;
}

}  // namespace

TEST_CASE("own planner: clients train and send the part that it plans") {
  const OwnMethods own;
  const auto full = own.hashes("");
  CHECK(own.hashes("strategy.planner={kind=\"own_whole\",part=1}") == full);
  CHECK(own.hashes("strategy.planner={kind=\"own_part\",part=1}") == full);
  const Outcome half = own.run("strategy.planner={kind=\"own_part\",part=0.5}");
  REQUIRE(half.models.size() == 4);
  const auto& first = half.models.front();
  const auto& last = half.models.back();
  const std::size_t middle = first.size() / 2;
  CHECK(std::equal(first.begin() + static_cast<std::ptrdiff_t>(middle), first.end(),
                   last.begin() + static_cast<std::ptrdiff_t>(middle)));
  CHECK(!std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(middle), last.begin()));
}

TEST_CASE("own planner: an exception or a wrong plan ends the run with an error that names the planner") {
  const OwnMethods own;
  const auto failure = [&](const std::string& fault) {
    return own.failure("strategy.planner={kind=\"own_part\",fault=\"" + fault + "\"}");
  };
  CHECK(failure("throws") == "the planner own_part threw an exception: index 7");
  CHECK(contains(failure("nothing"), "the planner own_part assigned client "));
  CHECK(failure("nothing").ends_with(" no parameter"));
  CHECK(failure("beyond").ends_with(" parameters beyond the model"));
  CHECK(own.failure("strategy.planner.kind=own_whole").ends_with("but its traits say whole_model"));
  CHECK(error_of_file("[strategy]\nplanner = { kind = \"own_part\", fault = \"read\" }\n") ==
        "run.toml:2: strategy.planner.kind: the planner own_part threw an exception: no option");
  CHECK(contains(error_of_file("[strategy]\nplanner = { kind = \"own_part\", part = 2 }\n"),
                 "strategy.planner.part: 2 is out of range, expected 0.01 to 1"));
  // Its traits decide with what it may be combined.
  const std::string median = "\naggregator.kind = \"median\"\n";
  CHECK(contains(error_of_file("[strategy]\nplanner.kind = \"own_part\"" + median),
                 "own_part makes clients send parts of the model, but the aggregator median"));
  CHECK(error_of_file("[strategy]\nplanner.kind = \"own_whole\"" + median).empty());
}

TEST_CASE("own objective: it adds its gradient as a built-in objective does, to the bit") {
  const OwnMethods own;
  const auto proximal = own.hashes("training.objective={kind=\"proximal\",mu=0.5}");
  CHECK(own.hashes("training.objective={kind=\"own_proximal\",strength=0.5}") == proximal);
  CHECK(own.hashes("") != proximal);
  CHECK(contains(error_of_file("[training]\nobjective = { kind = \"plain\", strength = 1 }\n"),
                 "training.objective.strength: has no effect with kind = \"plain\"; it applies only to "
                 "own_proximal"));
  CHECK(error_of_file("[training]\nobjective = { kind = \"own_proximal\", fault = \"make\" }\n") ==
        "run.toml:2: training.objective.kind: the objective own_proximal threw an exception: no table");
}

TEST_CASE("own server optimizer: it moves the model as a built-in one does, to the bit") {
  const OwnMethods own;
  const auto sgd = own.hashes("strategy.server_optimizer={kind=\"sgd\",learning_rate=0.5}");
  CHECK(own.hashes("strategy.server_optimizer={kind=\"own_sgd\",rate=0.5}") == sgd);
  CHECK(own.hashes("") != sgd);
  const auto failure = [&](const std::string& fault) {
    return own.failure("strategy.server_optimizer={kind=\"own_sgd\",fault=\"" + fault + "\"}");
  };
  CHECK(failure("throws") == "the server optimizer own_sgd threw an exception: index 7");
  CHECK(contains(failure("nan"), "the server optimizer own_sgd set parameter 0 to nan"));
  CHECK(contains(error_of_file("[strategy]\nserver_optimizer = { kind = \"own_sgd\", fault = \"null\" }\n"),
                 "strategy.server_optimizer.kind: the server optimizer own_sgd is null"));
}
