// An aggregator and a sampler as a user's program registers them, with faults to choose from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "aggregation/samplers/sampler.h"

namespace fedge::test {

// Fails where `fault` says, "late ..." in the second round, and otherwise adds 0.001 to all parameters.
class FaultyAggregator final : public aggregation::Aggregator {
 public:
  FaultyAggregator(std::string fault, std::size_t parameters)
      : fault_(std::move(fault)), parameters_(parameters) {
    if (fault_ == "make") throw std::runtime_error("no table");
  }
  Result<void> add(std::span<const aggregation::Update> updates, Parallel& parallel) override {
    if (fault_ == "add") throw std::out_of_range("index 7");
    if (fault_ == "task") parallel.for_each(100, [](std::size_t) { throw std::out_of_range("in a task"); });
    const bool late = rounds_ == 1 && ++added_ == 3;
    if (late && fault_ == "late add") return invalid("this update does not fit");
    if (late && fault_ == "late add unavailable") return Error{ErrorCode::kUnavailable, "no table today"};
    if (fault_ == "values") (void)updates[0].values->read(0, {});  // and ignores the error
    return {};
  }
  Result<void> prepare(Parallel&) override {
    if (fault_ == "prepare") throw 7;
    if (fault_ == "error") return invalid("the weights do not add up");
    if (rounds_ == 1 && fault_ == "late prepare full")
      return Error{ErrorCode::kResource, "too many updates for the table"};
    if (fault_ == "few") return Error{ErrorCode::kUnavailable, "it needs 100 updates"};
    return {};
  }
  Result<void> read(std::size_t, std::span<double> out, Parallel&) override {
    std::ranges::fill(out, 0.001);
    if (fault_ == "nan") out[3] = std::numeric_limits<double>::quiet_NaN();
    if (fault_ == "large") out[0] = 1e39;
    return {};
  }
  Coverage covered() const override {
    if (fault_ == "covered") throw std::runtime_error("nothing is covered");
    return Coverage::all(parameters_);
  }
  void clear() override {
    ++rounds_;
    added_ = 0;
  }
  std::vector<std::span<std::byte>> memory() override {  // so that a restarted run fails again
    return {std::as_writable_bytes(std::span(&rounds_, 1))};
  }

 private:
  std::string fault_;
  std::size_t parameters_;
  std::uint64_t rounds_ = 0;
  std::size_t added_ = 0;
};

// Selects the first candidates, until round 2.
class FaultySampler final : public aggregation::Sampler {
 public:
  explicit FaultySampler(std::string fault) : fault_(std::move(fault)) {
    if (fault_ == "make") throw std::runtime_error("no table");
  }
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    if (request.round >= RoundNumber(2)) {
      if (fault_ == "select") throw std::out_of_range("index 7");
      if (fault_ == "stranger") return {{ClientId(1000)}};
    }
    std::vector<aggregation::Selected> chosen;
    for (std::size_t i = 0; i < std::min(request.count, request.candidates.size()); ++i)
      chosen.push_back({request.candidates[i].client});
    if (fault_ == "order") std::ranges::reverse(chosen);
    if (fault_ == "inclusion") chosen[0].inclusion = std::numeric_limits<double>::quiet_NaN();
    if (fault_ == "coefficient") chosen[0].coefficient = -1;
    return chosen;
  }

 private:
  std::string fault_;
};

inline aggregation::AggregatorPart read_faulty_aggregator(config::Reader& section) {
  const std::string fault = section.text("fault", "", "Where it fails.");
  if (fault == "read") throw std::runtime_error("no option");
  return {
      .make =
          [fault](const aggregation::AggregatorContext& context) -> std::unique_ptr<aggregation::Aggregator> {
        return std::make_unique<FaultyAggregator>(fault, context.layout->size());
      }};
}

// Registers both as "faulty", once, and the aggregator as "faulty_linear", too: clients may aggregate with
// it.
inline void register_faulty_parts() {
  static const bool registered = [] {
    const auto aggregator = [](const char* name, aggregation::AggregatorTraits traits) {
      aggregation::register_aggregator(
          {.name = name, .paper = "", .summary = "fails", .traits = traits, .read = read_faulty_aggregator});
    };
    aggregator("faulty", {});
    aggregator("faulty_linear", {.linear = true});
    aggregation::register_sampler({.name = "faulty",
                                   .paper = "",
                                   .summary = "fails",
                                   .read = [](config::Reader& section) -> aggregation::SamplerFactory {
                                     const std::string fault = section.text("fault", "", "Where it fails.");
                                     return [fault] { return std::make_unique<FaultySampler>(fault); };
                                   }});
    return true;
  }();
  REQUIRE(registered);
}

}  // namespace fedge::test
