#include "privacy/differential/accounting/rdp.h"

#include <algorithm>
#include <cmath>

#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/search.h"

namespace fedge::privacy {
namespace {

std::vector<double> make_orders() {
  std::vector<double> orders = {1.02, 1.05};
  for (int tenth = 11; tenth <= 109; ++tenth) orders.push_back(tenth / 10.0);
  for (int order = 11; order < 64; ++order) orders.push_back(order);
  for (int order = 64; order <= 256; order += 8) orders.push_back(order);
  for (const double order : {512.0, 1024.0, 2048.0}) orders.push_back(order);
  return orders;
}

// The least value of `bound` over the orders, refined between the neighbours of the best order.
template <class Bound>
RdpBound refined(const Bound& bound, std::span<const double> orders) {
  RdpBound best{kInfinity, 0};
  std::size_t place = 0;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const double value = bound(orders[i]);
    if (value >= best.value) continue;
    best = {value, orders[i]};
    place = i;
  }
  if (best.order == 0) return best;
  const double low = place == 0 ? 1 + 0.5 * (orders[0] - 1) : orders[place - 1];
  const double high = place + 1 == orders.size() ? 4 * orders.back() : orders[place + 1];
  const Minimum found = golden_section(bound, low, high, 24);
  return found.value < best.value ? RdpBound{found.value, found.at} : best;
}

}  // namespace

double rdp_epsilon(double order, double r, double delta) {
  if (delta * delta >= -std::expm1(-r)) return 0;
  return std::max(0.0, r + std::log1p(-1 / order) - std::log(delta * order) / (order - 1));
}

double rdp_delta(double order, double r, double epsilon) {
  if (std::isinf(r)) return 1;
  const double log_delta = (order - 1) * (r - epsilon + std::log1p(-1 / order)) - std::log(order);
  return std::min(std::exp(std::min(0.0, log_delta)), std::sqrt(-std::expm1(-r)));
}

const std::vector<double>& recommended_orders() {
  static const std::vector<double> orders = make_orders();
  return orders;
}

RdpBound best_rdp_epsilon(const RdpCurve& curve, double delta, std::span<const double> orders) {
  RdpBound best{kInfinity, 0};
  for (const double order : orders) {
    const double epsilon = rdp_epsilon(order, curve(order), delta);
    if (epsilon < best.value) best = {epsilon, order};
  }
  return best;
}

RdpBound best_rdp_epsilon(const RdpCurve& curve, double delta) {
  return refined([&](double order) { return rdp_epsilon(order, curve(order), delta); }, recommended_orders());
}

RdpBound best_rdp_delta(const RdpCurve& curve, double epsilon) {
  return refined([&](double order) { return rdp_delta(order, curve(order), epsilon); }, recommended_orders());
}

}  // namespace fedge::privacy
