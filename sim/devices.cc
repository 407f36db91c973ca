#include "sim/devices.h"

#include <algorithm>
#include <cmath>

namespace fedge::sim {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;

// Longer times are cut to this, beyond any run, because a Duration could not hold them.
constexpr double kLongestSeconds = 1e9;

Duration time_for(double amount, double per_second) {
  return seconds(std::min(amount / per_second, kLongestSeconds));
}

}  // namespace

Device::Device(const SimulationSpec& spec, ClientId client, const Rng& rng, const DeviceEnergy* energy) {
  const std::size_t capability = spec.capabilities_dealt
                                     ? client.value() % spec.capabilities.size()
                                     : rng.fork("capability", client.value()).below(spec.capabilities.size());
  capability_ = spec.capabilities[capability];
  listens_ = rng.fork("listens", client.value()).uniform() < spec.listening;
  Rng draws = rng.fork("device", client.value());
  samples_per_second_ = spec.samples_per_second * spec.speeds[client.value() % spec.speeds.size()] *
                        std::exp(spec.speed_sigma * draws.normal());
  if (energy != nullptr) samples_per_second_ = energy->fastest(client);
  down_bytes_per_second_ =
      spec.down_mbps * kBytesPerMegabit * std::exp(spec.bandwidth_sigma * draws.normal());
  up_bytes_per_second_ = spec.up_mbps * kBytesPerMegabit * std::exp(spec.bandwidth_sigma * draws.normal());
}

Device::Training Device::training(SampleCount samples, const learn::TrainingSpec& spec,
                                  Duration limit) const {
  const auto steps = static_cast<double>(spec.steps(std::max<std::uint64_t>(samples.value(), 1)));
  const Duration time = time_for(learn::samples_seen(spec, samples), samples_per_second_);
  if (time <= limit) return {time, 0};
  const double made = std::max(1.0, std::floor(steps * (to_seconds(limit) / to_seconds(time))));
  return {seconds(to_seconds(time) * made / steps), static_cast<std::uint64_t>(made)};
}

Duration Device::evaluation_time(SampleCount samples) const {
  return time_for(static_cast<double>(samples.value()) / 3, samples_per_second_);
}

Duration Device::task_time(SampleCount samples, const learn::TrainingSpec& spec, Bytes payload) const {
  return download_time(payload) + training(samples, spec, Duration::max()).time + upload_time(payload);
}

Duration Device::download_time(Bytes bytes) const {
  return time_for(static_cast<double>(bytes.value()), down_bytes_per_second_);
}

Duration Device::upload_time(Bytes bytes) const {
  return time_for(static_cast<double>(bytes.value()), up_bytes_per_second_);
}

std::shared_ptr<const DevicePower> described_power(const DeviceEnergy& energy, ClientId client,
                                                   const Device& device) {
  auto power = std::make_shared<DevicePower>(energy.power(client));
  power->send_bytes_per_second = device.upload_rate();
  power->receive_bytes_per_second = device.download_rate();
  return power;
}

// Devices of one site have about the same latency; it varies between sites.
Duration Devices::latency(ClientId client) const {
  if (spec_.latency_sigma == 0) return spec_.latency;
  constexpr double kWithinSite = 0.02;
  const double site = rng_.fork("site latency", availability_.site(client)).normal();
  const double device = rng_.fork("device latency", client.value()).normal();
  return seconds(to_seconds(spec_.latency) * std::exp(spec_.latency_sigma * site + kWithinSite * device));
}

}  // namespace fedge::sim
