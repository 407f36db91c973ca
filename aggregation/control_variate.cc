#include "aggregation/control_variate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

constexpr std::size_t kVariatePiece = std::size_t{1} << 16;
// Far beyond any honest change, yet the sum over a million clients stays within 64 bits.
constexpr double kMaxChange = 0x1p14;

}  // namespace

ControlUnits control_units(double value) {
  return static_cast<ControlUnits>(std::nearbyint(std::clamp(value, -kMaxChange, kMaxChange) / kControlUnit));
}

ControlUnits control_change(float control, float delta, double scale) {
  return control_units(-static_cast<double>(control) - static_cast<double>(delta) * scale);
}

ControlVariate::ControlVariate(std::size_t parameters, std::size_t clients, double learning_rate)
    : clients_(clients), learning_rate_(learning_rate), total_(parameters), pending_(parameters) {}

void ControlVariate::read(std::size_t first, std::span<float> out) const {
  const double share = kControlUnit / static_cast<double>(clients_);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(total_.data()[first + i]) * share);
}

Result<void> ControlVariate::add(const Update& update) {
  FEDGE_CHECK(update.coverage.count() == total_.size(), "control variates are of the whole model");
  const double scale = 1.0 / (static_cast<double>(update.steps) * learning_rate_);
  AlignedBuffer<float> control(kVariatePiece);
  AlignedBuffer<float> delta(kVariatePiece);
  for (std::size_t first = 0; first < total_.size(); first += kVariatePiece) {
    const std::size_t count = std::min(kVariatePiece, total_.size() - first);
    FEDGE_TRY_VOID(update.values->read(first, delta.span().first(count)));
    read(first, control.span().first(count));
    for (std::size_t i = 0; i < count; ++i)
      pending_.data()[first + i] += control_change(control.data()[i], delta.data()[i], scale);
  }
  return {};
}

void ControlVariate::close() {
  for (std::size_t i = 0; i < total_.size(); ++i) total_.data()[i] += std::exchange(pending_.data()[i], 0);
}

}  // namespace fedge::aggregation
