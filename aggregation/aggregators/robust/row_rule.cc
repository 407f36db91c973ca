#include "aggregation/aggregators/robust/row_rule.h"

#include <utility>

namespace fedge::aggregation {
namespace {

class KeptAggregator final : public Aggregator {
 public:
  KeptAggregator(KeptUpdates updates, std::unique_ptr<RowRule> rule)
      : updates_(std::move(updates)), rule_(std::move(rule)) {}

  Result<void> add(std::span<const Update> updates, Parallel&) override { return updates_.add(updates); }

  Result<void> prepare(Parallel& parallel) override {
    if (updates_.updates() == 0) return Error{ErrorCode::kUnavailable, "no update has arrived"};
    updates_.arrange();
    FEDGE_TRY_VOID(rule_->prepare(updates_, parallel));
    prepared_ = true;
    return {};
  }

  Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) override {
    FEDGE_CHECK(prepared_, "an aggregate that has not been prepared");
    return rule_->read(updates_, first, out, parallel);
  }

  Coverage covered() const override { return prepared_ ? Coverage::all(updates_.parameters()) : Coverage(); }

  void clear() override {
    updates_.clear();
    prepared_ = false;
  }

  std::vector<std::span<std::byte>> memory() override {
    auto spans = rule_->memory(updates_.parameters());
    spans.push_back(updates_.memory());
    return spans;
  }

 private:
  KeptUpdates updates_;
  std::unique_ptr<RowRule> rule_;
  bool prepared_ = false;
};

}  // namespace

AggregatorPart on_rows(const RowRulePart& part, RowRuleFactory make) {
  return {.make = [part,
                   make = std::move(make)](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
            return std::make_unique<KeptAggregator>(KeptUpdates(context, part.options, part.name),
                                                    make(context));
          },
          .min_updates = updates_for_rows(part.min_rows, part.options)};
}

}  // namespace fedge::aggregation
