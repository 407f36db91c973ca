// A virtual device's speed and link, drawn once per client from the run's seed.
#pragma once

#include "core/ids.h"
#include "core/rng.h"
#include "core/time.h"
#include "sim/spec.h"

namespace fedge::sim {

class Device {
 public:
  // `rng` is the run's root stream.
  Device(const SimulationSpec& spec, ClientId client, const Rng& rng);

  Duration training_time(SampleCount samples, std::size_t epochs) const;
  // Time the bytes occupy this client's link in one direction, without latency.
  Duration download_time(Bytes bytes) const;
  Duration upload_time(Bytes bytes) const;

 private:
  double samples_per_second_;
  double down_bytes_per_second_;
  double up_bytes_per_second_;
};

}  // namespace fedge::sim
