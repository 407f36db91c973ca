// Renyi differential privacy (Mironov, "Renyi Differential Privacy", CSF 2017). A mechanism's curve r(a)
// bounds the Renyi divergence of order a > 1 between its outputs on neighbouring data. The curves of
// consecutive mechanisms add up. This makes it the simplest accountant, valid for every mechanism with a
// curve. Its epsilon is 8 to 44 % above the exact one in the settings of
// docs/algorithms/privacy-accounting.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace fedge::privacy {

// r(a) for real a > 1; may be infinite. Nondecreasing.
using RdpCurve = std::function<double(double)>;

// The least epsilon at this delta that follows from r = r(order): r + log(1 - 1/a) - log(delta a) / (a - 1)
// (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, proposition 12).
// 0 if delta^2 >= 1 - e^-r, which bounds the total variation (Bretagnolle and Huber 1978).
double rdp_epsilon(double order, double r, double delta);
// The same equations solved for delta; at most 1.
double rdp_delta(double order, double r, double epsilon);

// 1.02, 1.05, 1.1 to 10.9 by 0.1, 11 to 63, 64 to 256 by 8, 512, 1024, 2048.
const std::vector<double>& recommended_orders();

struct RdpBound {
  double value = 0;  // epsilon or delta
  double order = 0;  // the order at which it is reached
};
// The best bound over exactly these orders.
RdpBound best_rdp_epsilon(const RdpCurve& curve, double delta, std::span<const double> orders);
// The best bound over the recommended orders, then over all real orders between the neighbours of the best.
RdpBound best_rdp_epsilon(const RdpCurve& curve, double delta);
RdpBound best_rdp_delta(const RdpCurve& curve, double epsilon);

}  // namespace fedge::privacy
