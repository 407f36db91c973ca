// A virtual device's speed, capability, link and distance, drawn once for each client from the run's seed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/ids.h"
#include "core/rng.h"
#include "core/time.h"
#include "learn/spec.h"
#include "learn/task.h"
#include "sim/availability/availability.h"
#include "sim/energy/device_energy.h"
#include "sim/spec.h"

namespace fedge::sim {

class Device {
 public:
  // `rng` is the run's root stream. `energy`: what decides its speed; null: the specification does.
  Device(const SimulationSpec& spec, ClientId client, const Rng& rng, const DeviceEnergy* energy = nullptr);

  struct Training {
    Duration time;
    std::uint64_t max_steps = 0;  // steps within the limit, at least one; 0: all steps
  };
  // Duration of local training that stops between two steps once `limit` has passed.
  Training training(SampleCount samples, const learn::TrainingSpec& spec, Duration limit) const;
  // Duration of an evaluation on this many samples: a third of a step's computation for each, the forward
  // pass.
  Duration evaluation_time(SampleCount samples) const;
  // From the model's first byte to the update's last, both of this size, without latency.
  Duration task_time(SampleCount samples, const learn::TrainingSpec& spec, Bytes payload) const;
  // For the whole model.
  double samples_per_second() const { return samples_per_second_; }
  // The same device when it trains at this speed.
  Device at_speed(double samples_per_second) const {
    Device device = *this;
    device.samples_per_second_ = samples_per_second;
    return device;
  }
  // Share of a model that it can train.
  double capability() const { return capability_; }
  // True if other clients can connect to it.
  bool listens() const { return listens_; }
  double download_rate() const { return down_bytes_per_second_; }  // bytes per second
  double upload_rate() const { return up_bytes_per_second_; }
  // Time for which the bytes occupy this client's link in one direction, without latency.
  Duration download_time(Bytes bytes) const;
  Duration upload_time(Bytes bytes) const;

 private:
  double capability_;
  bool listens_;
  double samples_per_second_;
  double down_bytes_per_second_;
  double up_bytes_per_second_;
};

// What this device says about its energy, with the rates of its link.
std::shared_ptr<const DevicePower> described_power(const DeviceEnergy& energy, ClientId client,
                                                   const Device& device);

// The devices of a run's clients: pure functions of specification, seed and client. Immutable; any thread.
class Devices {
 public:
  // `rng` is the run's root stream. `energy`: null if devices have no processors. The other arguments must
  // outlive the object.
  Devices(const SimulationSpec& spec, const Availability& availability, const Rng& rng,
          std::unique_ptr<const DeviceEnergy> energy = nullptr)
      : spec_(spec), availability_(availability), rng_(rng), energy_(std::move(energy)) {}

  Device of(ClientId client) const { return Device(spec_, client, rng_, energy_.get()); }
  // Null if devices have no processors.
  const DeviceEnergy* energy() const { return energy_.get(); }
  // What the client says about its energy; null: nothing.
  std::shared_ptr<const DevicePower> power(ClientId client) const {
    return energy_ ? described_power(*energy_, client, of(client)) : nullptr;
  }
  // Returns the one-way latency between this client and the coordinator.
  Duration latency(ClientId client) const;

 private:
  const SimulationSpec& spec_;
  const Availability& availability_;
  Rng rng_;
  std::unique_ptr<const DeviceEnergy> energy_;
};

}  // namespace fedge::sim
