#include "sim/directory/virtual_directory.h"

#include <algorithm>
#include <array>

namespace fedge::sim {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(250);

}  // namespace

VirtualDirectory::VirtualDirectory(const DirectorySpec& spec, std::size_t clients, const Rng& root)
    : clients_(clients), rng_(root.fork("directory")), directories_(clients + 1), keys_(clients + 1) {
  if (spec.kind != DirectorySpec::Kind::kOverlay) return;
  network_ = std::make_unique<OverlayNetwork>(
      spec.overlay, clients + 1, rng_.fork("overlay"),
      NetworkSetup{.policy = keep_right_records([this] { return network_->now(); })});
  network_->start(static_cast<dht::Address>(clients));
}

dht::Directory& VirtualDirectory::directory(std::size_t node) {
  if (!network_) return table_;
  auto& directory = directories_[node];
  if (!directory) directory = std::make_unique<OverlayDirectory>(*network_, static_cast<dht::Address>(node));
  directory->advance(network_->now());
  return *directory;
}

const SecretKey& VirtualDirectory::key(std::size_t node) {
  auto& key = keys_[node];
  if (!key) {
    Rng stream = rng_.fork("key", node);
    std::array<std::uint8_t, 32> seed{};
    for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(stream.below(256));
    key = std::make_unique<SecretKey>(SecretKey::from_seed(seed));
  }
  return *key;
}

void VirtualDirectory::device_up(ClientId client) {
  if (network_ && !network_->up(client.value())) network_->start(client.value());
}

void VirtualDirectory::device_down(ClientId client) {
  if (network_ && network_->up(client.value())) network_->stop(client.value(), false);
}

std::optional<Time> VirtualDirectory::next_event_time() {
  if (!network_) return std::nullopt;
  const auto next = network_->next_event_time();
  return next ? std::min(*next, next_look_) : next_look_;
}

void VirtualDirectory::run_until(Time now) {
  if (!network_) return table_.advance(now);
  network_->run_until(now);
  if (now < next_look_) return;
  next_look_ = now + kLook;
  of_coordinator();  // advances its time, which triggers its watches
}

}  // namespace fedge::sim
