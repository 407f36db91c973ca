// A planner, an objective and a server optimizer as a user's program registers them, with faults to choose
// from.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/planners/planner.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "learn/objectives/kinds.h"

namespace fedge::test {

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

// The server optimizer sgd. Faults other than "null" and "no memory" spare the trial of one parameter when
// the run file is read.
class OwnSgd final : public aggregation::ServerOptimizer {
 public:
  OwnSgd(std::size_t parameters, double rate, std::string fault)
      : parameters_(parameters), rate_(rate), fault_(std::move(fault)) {
    if (fault_ == "large" && parameters_ > 1) throw std::runtime_error("too large");
  }
  void step(std::size_t, std::span<float> model, std::span<const double> aggregate) override {
    if (fault_ == "throws" && model.size() > 1) throw std::out_of_range("index 7");
    for (std::size_t i = 0; i < model.size(); ++i)
      model[i] = static_cast<float>(static_cast<double>(model[i]) + rate_ * aggregate[i]);
    if (fault_ == "nan" && model.size() > 1) model[0] = std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<std::span<std::byte>> memory() override {
    if (fault_ == "no memory" || (fault_ == "memory" && parameters_ > 1))
      throw std::runtime_error("no memory");
    return {};
  }

 private:
  std::size_t parameters_;
  double rate_;
  std::string fault_;
};

inline aggregation::PlannerPart read_first_part(config::Reader& section) {
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

inline learn::ObjectiveFactory read_own_proximal(config::Reader& section, learn::ObjectiveSpec&) {
  const auto mu = static_cast<float>(section.number("strength", 0.5, {0, 10}, "Factor of the term."));
  const std::string fault = section.text("fault", "", "Where it fails.");
  return [mu, fault](const learn::ObjectiveSpec&) -> std::shared_ptr<const learn::Objective> {
    if (fault == "make") throw std::runtime_error("no table");
    return std::make_shared<OwnProximal>(mu, fault);
  };
}

inline aggregation::ServerOptimizerFactory read_own_sgd(config::Reader& section) {
  const double rate = section.number("rate", 0.5, {0, 10}, "Factor of the aggregate.");
  const std::string fault = section.text("fault", "", "Where it fails.");
  return [rate, fault](std::size_t parameters) -> std::unique_ptr<aggregation::ServerOptimizer> {
    if (fault == "null") return nullptr;
    return std::make_unique<OwnSgd>(parameters, rate, fault);
  };
}

// Registers, once: the planners own_part and own_whole, the objective own_proximal and the server optimizer
// own_sgd.
inline void register_own_methods() {
  static const bool registered = [] {
    const auto planner = [](const char* name, aggregation::PlannerTraits traits) {
      aggregation::register_planner(
          {.name = name, .paper = "", .summary = "", .traits = traits, .read = read_first_part});
    };
    planner("own_part", {});
    planner("own_whole", {.whole_model = true});
    learn::register_objective(
        {.name = "own_proximal", .paper = "", .summary = "", .read = read_own_proximal});
    aggregation::register_server_optimizer(
        {.name = "own_sgd", .paper = "", .summary = "", .read = read_own_sgd});
    return true;
  }();
  REQUIRE(registered);
}

}  // namespace fedge::test
