#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "aggregation/own_parts.h"
#include "aggregation/planners/layers.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

class OwnPlanner final : public Planner {
 public:
  OwnPlanner(std::string part, std::unique_ptr<Planner> planner, const PlannerContext& context, bool whole)
      : part_(std::move(part)), planner_(std::move(planner)), layout_(context.layout), whole_(whole) {}

  void admit(ClientId client, double capability) override {
    config::guarded(part_, [&] { planner_->admit(client, capability); });
  }
  void describe(ClientId client, const DevicePower& power) override {
    config::guarded(part_, [&] { planner_->describe(client, power); });
  }
  void limit(ClientId client, double share) override {
    config::guarded(part_, [&] { planner_->limit(client, share); });
  }
  void observe(RoundNumber round, double norm) override {
    config::guarded(part_, [&] { planner_->observe(round, norm); });
  }
  void delivered(const Delivered& update) override {
    config::guarded(part_, [&] { planner_->delivered(update); });
  }
  Coverage plan(const PlanRequest& request) override {
    Coverage plan = config::guarded(part_, [&] { return planner_->plan(request); });
    const Coverage trainable = layout_->trainable();
    const char* wrong = plan.empty()                          ? "no parameter"
                        : plan.end() > layout_->size()        ? "parameters beyond the model"
                        : !check_ranges(plan.ranges().size()) ? "too many separate ranges"
                        : !plan.subtract(trainable).empty()
                            ? "frozen parameters; with adapters only these are trained"
                        : whole_ && plan != trainable ? "a part of the model, but its traits say whole_model"
                                                      : nullptr;
    if (wrong != nullptr)
      throw PartFailure(part_ + " assigned client " + std::to_string(request.client.value()) + " " + wrong);
    return plan;
  }
  Effort effort(const PlanRequest& request) override {
    const Effort effort = config::guarded(part_, [&] { return planner_->effort(request); });
    if (std::isfinite(effort.hertz) && effort.hertz >= 0 && effort.kept >= 0 && effort.kept <= 1)
      return effort;
    throw PartFailure(
        part_ + " asked for " + number_text(effort.hertz) + " Hz and " + number_text(effort.kept) +
        " of the update; effort() must return a frequency of at least 0 and a fraction from 0 to 1");
  }
  double share(ClientId client) const override {
    const double share = config::guarded(part_, [&] { return planner_->share(client); });
    if (share > 0 && share <= 1) return share;
    throw PartFailure(part_ + " returned the share " + number_text(share) +
                      "; share() must return a value above 0 and at most 1");
  }

 private:
  std::string part_;
  std::unique_ptr<Planner> planner_;
  std::shared_ptr<const ParameterLayout> layout_;
  bool whole_;
};

}  // namespace

PlannerPart read_part(const PlannerKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the planner ") + kind.name;
  try {
    PlannerPart read = config::guarded(part, [&] { return kind.read(section); });
    read.make = [part, whole = kind.traits.whole_model, make = std::move(read.make)](
                    const PlannerContext& context) -> Result<std::unique_ptr<Planner>> {
      return config::failure_as_error([&]() -> Result<std::unique_ptr<Planner>> {
        auto made = config::guarded(part, [&] { return make(context); });
        if (!made) return made.error().with_prefix(part + ": ");
        if (!*made) return invalid(part + " is null: its factory returned no object");
        return std::unique_ptr<Planner>(std::make_unique<OwnPlanner>(part, std::move(*made), context, whole));
      });
    };
    return read;
  } catch (const PartFailure& failure) {
    section.fail("kind", failure.what());
    return {};
  }
}

}  // namespace fedge::aggregation
