// An aggregator that needs all updates of a round at once: the mean of the `keep` updates with the smallest
// norms. Large updates, as from broken devices, do not count. Run it as
//   smallest-norms-sim run examples/custom_kept_updates/run.toml
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "apps/sim_program.h"

using namespace fedge;
using namespace fedge::aggregation;

class SmallestNorms final : public Aggregator {
 public:
  SmallestNorms(std::size_t parameters, std::size_t keep, bool weighted)
      : parameters_(parameters), keep_(keep), weighted_(weighted) {}

  // Keeps the updates, but not copies of their values: those stay where Fedge stores them, until clear().
  Result<void> add(std::span<const Update> updates, Parallel&) override {
    updates_.insert(updates_.end(), updates.begin(), updates.end());
    return {};
  }
  Result<void> prepare(Parallel&) override {
    if (updates_.size() < keep_)  // for example because clients dropped out; the model keeps its values
      return Error{ErrorCode::kUnavailable, "it needs " + std::to_string(keep_) + " updates, the round has " +
                                                std::to_string(updates_.size())};
    // The client's number decides between equal norms, so the order of arrival never matters.
    std::ranges::sort(updates_, {},
                      [](const Update& update) { return std::pair(update.norm, update.client); });
    updates_.erase(updates_.begin() + static_cast<std::ptrdiff_t>(keep_), updates_.end());
    total_ = 0;
    for (const Update& update : updates_) total_ += weight(update);
    return {};
  }
  Result<void> read(std::size_t first, std::span<double> out, Parallel&) override {
    std::ranges::fill(out, 0.0);
    std::vector<float> values(out.size());
    for (const Update& update : updates_) {
      FEDGE_TRY_VOID(update.values->read(first, values));
      const double share = weight(update) * update.factor / total_;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += share * static_cast<double>(values[i]);
    }
    return {};
  }
  Coverage covered() const override { return Coverage::all(parameters_); }
  void clear() override { updates_.clear(); }

 private:
  double weight(const Update& update) const {
    return weighted_ ? static_cast<double>(update.weight.value()) : 1.0;
  }

  std::size_t parameters_;
  std::size_t keep_;
  bool weighted_;
  std::vector<Update> updates_;  // after prepare() only those that count
  double total_ = 0;             // the sum of their weights
};

AggregatorPart read_smallest_norms(config::Reader& section) {
  const auto keep = static_cast<std::size_t>(section.integer(
      "keep", 6, {1, 100'000}, "Number of updates that count: those with the smallest norms."));
  const bool weighted = section.boolean("weighted", true, "Whether an update counts by its samples.");
  return {.make = [keep, weighted](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
            return std::make_unique<SmallestNorms>(context.layout->size(), keep, weighted);
          },
          .min_updates = keep};
}

int main(int argc, char** argv) {
  register_aggregator({.name = "smallest_norms",
                       .paper = "an example",
                       .summary = "mean of the updates with the smallest norms",
                       .traits = {.keeps_individuals = true},
                       .read = read_smallest_norms});
  return apps::sim_main(argc, argv);
}
