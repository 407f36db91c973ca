#include "sim/availability/availability.h"

#include "core/check.h"
#include "sim/availability/kinds.h"

namespace fedge::sim {
namespace {

class Always final : public Availability {
 public:
  Phase first(ClientId) const override { return {}; }
  Phase next(ClientId, const Phase& phase) const override {
    FEDGE_CHECK(phase.until, "this phase has no end");
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<Availability>> make_availability(const AvailabilitySpec& spec, Population population,
                                                        const Rng& rng) {
  switch (spec.kind) {
    case AvailabilityKind::kAlways:
      return std::unique_ptr<Availability>(std::make_unique<Always>());
    case AvailabilityKind::kGilbertElliott:
      return make_gilbert_elliott(spec, rng);
    case AvailabilityKind::kDiurnal:
      return make_diurnal(spec, rng);
    case AvailabilityKind::kCommonShock:
      return make_common_shock(spec, population, rng);
    case AvailabilityKind::kTrace:
      return make_trace(spec, population);
  }
  FEDGE_CHECK(false, "availability of no known kind");
  return invalid("simulation.availability.kind: unknown kind");
}

}  // namespace fedge::sim
