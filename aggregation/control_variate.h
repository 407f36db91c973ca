// ControlVariate: SCAFFOLD's server control variate c (Karimireddy et al., ICML 2020, algorithm 1, option
// II), the mean of the clients' c_k over all N clients. The server derives a client's change from data it
// already has:
//   c_k+ - c_k = -c - delta_k / (steps_k * eta_l),
// Clients therefore upload only their update: both sides call control_change() with the same numbers and get
// the same bits. Changes are summed as integers of 2^-28, so N c is exactly the sum of all c_k in any order.
// Memory: 16 bytes a parameter. Externally synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "core/aligned_buffer.h"

namespace fedge::aggregation {

// A control variate's entry in units of 2^-28.
using ControlUnits = std::int64_t;
inline constexpr double kControlUnit = 0x1p-28;

// The nearest number of units, within +-2^14.
ControlUnits control_units(double value);
// The change of a client's control variate at one parameter, in units: `control` is the server's c as it
// was sent, `delta` the client's update, `scale` = 1 / (steps * learning rate). Rounded to even.
ControlUnits control_change(float control, float delta, double scale);

class ControlVariate {
 public:
  // `clients` is the number of all clients; `learning_rate` is that of their SGD.
  ControlVariate(std::size_t parameters, std::size_t clients, double learning_rate);

  // Reads c of parameters first, first + 1, ..., as it is sent to clients.
  void read(std::size_t first, std::span<float> out) const;
  // Adds the change of one client whose full-coverage update was accepted. The error is that of reading its
  // values.
  Result<void> add(const Update& update);
  // The sum of this round's changes, one a parameter.
  std::span<ControlUnits> changes() { return pending_.span(); }
  // Ends the round: adds its changes to c.
  void close();
  // As Aggregator::memory(); between rounds.
  std::span<std::byte> memory() { return std::as_writable_bytes(total_.span()); }

 private:
  std::size_t clients_;
  double learning_rate_;
  AlignedBuffer<ControlUnits> total_;    // N c
  AlignedBuffer<ControlUnits> pending_;  // changes of this round
};

}  // namespace fedge::aggregation
