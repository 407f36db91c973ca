// Helpers of the aggregator tests: updates in memory, and parts read from a line of TOML.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/config/document.h"

namespace fedge::aggregation {

// An update's values in memory, handed out as a whole or only in pieces, as a chunk store does.
class TestValues final : public UpdateValues {
 public:
  TestValues(std::vector<float> values, bool in_pieces) : values_(std::move(values)), in_pieces_(in_pieces) {}
  std::span<const float> in_memory() const override {
    return in_pieces_ ? std::span<const float>() : std::span<const float>(values_);
  }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    REQUIRE(first + out.size() <= values_.size());
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    return {};
  }

 private:
  std::vector<float> values_;
  bool in_pieces_;
};

inline Update test_update(std::uint32_t client, std::vector<float> values, std::uint64_t weight = 1,
                          bool in_pieces = false) {
  Update update{.client = ClientId(client), .weight = SampleCount(weight)};
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  update.norm = std::sqrt(squares);
  update.coverage = Coverage::all(values.size());
  update.values = std::make_shared<TestValues>(std::move(values), in_pieces);
  return update;
}

inline AggregatorContext test_context(std::size_t parameters) {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("weights", {parameters});
  return {.layout = std::move(layout), .max_updates = 100};
}

// Reads a part from options written as in a run file: "trim = 2\n".
template <class Kind>
auto read_part(const Kind& kind, const std::string& options) {
  const auto document = config::parse_toml(options, "part.toml");
  REQUIRE(document);
  config::Reader section(document->root, "", "part.toml");
  auto part = kind.read(section);
  const auto finished = section.finish();
  if (!finished) FAIL(finished.error().message);
  return part;
}

template <class Kinds>
const auto& kind_named(const Kinds& kinds, const std::string& name) {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return name == kind.name; });
  REQUIRE(found != kinds.end());
  return *found;
}

inline std::unique_ptr<Aggregator> make_aggregator(const std::string& name, const AggregatorContext& context,
                                                   const std::string& options = "") {
  return read_part(kind_named(aggregator_kinds(), name), options).make(context);
}

inline std::unique_ptr<ServerOptimizer> make_optimizer(const std::string& name, std::size_t parameters,
                                                       const std::string& options = "") {
  return read_part(kind_named(server_optimizer_kinds(), name), options)(parameters);
}

inline std::vector<double> aggregate_of(Aggregator& aggregator, std::size_t parameters) {
  Sequential sequential;
  REQUIRE(aggregator.prepare(sequential));
  std::vector<double> out(parameters);
  REQUIRE(aggregator.read(0, out, sequential));
  return out;
}

}  // namespace fedge::aggregation
