// The directory's contract on each simulated overlay.
#include "sim/directory/overlay_directory.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>

#include "tests/support/directory_suite.h"

namespace fedge::sim {
namespace {

template <dht::OverlayKind kKind>
class OverlayHarness final : public dht::suite::Harness {
 public:
  OverlayHarness() : network_(options(), kNodes + 1, Rng(7), {.policy = policy()}) {
    std::vector<dht::Address> everybody;
    for (dht::Address node = 0; node <= kNodes; ++node) everybody.push_back(node);
    network_.start_static(everybody);
    for (std::size_t place = 0; place < kPlaces; ++place)
      directories_.at(place) =
          std::make_unique<OverlayDirectory>(network_, static_cast<dht::Address>(10 * place));
    run_to(Time(seconds(1000)));
  }

  dht::Directory& at(std::size_t place) override { return *directories_.at(place); }
  Time now() const override { return network_.now(); }
  void pass(Duration duration) override { run_to(now() + duration); }
  bool wait(const std::function<bool()>& condition) override {
    const Time until = now() + seconds(15);
    while (!condition()) {
      if (now() > until) return false;
      run_to(now() + std::chrono::milliseconds(20));
    }
    return true;
  }
  void plant(const dht::Record& claimed, std::vector<std::byte> bytes) override {
    dht::Id key = 0;
    for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | claimed.key[i];
    planted_under_ = claimed.key;
    const bool oversized = bytes.size() > dht::kMaxSignedRecord;
    bool done = false;
    network_.publish(kHostile,
                     {.key = key,
                      .slot = ++planted_,
                      .sequence = claimed.sequence,
                      .bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes)),
                      .expires = now() + seconds(60)},
                     [&](const dht::PublishResult& result) {
                       done = true;
                       // A store checks the size before it calls the policy.
                       if (oversized && result.refused > 0) ++refused_[dht::Flaw::kOversized];
                     });
    REQUIRE(wait([&] { return done; }));
  }
  dht::FlawCounts refused() override { return refused_; }

 private:
  static constexpr dht::Address kNodes = 40;
  static constexpr dht::Address kHostile = kNodes;

  static dht::OverlayOptions options() {
    dht::OverlayOptions options;
    options.kind = kKind;
    return options;
  }
  dht::StorePolicy policy() {
    return [this, right = keep_right_records([this] { return network_.now(); })](const dht::Value* present,
                                                                                 const dht::Value& offered) {
      const bool keeps = right(present, offered);
      if (!keeps) count(*offered.bytes);
      return keeps;
    };
  }
  // Counts values that a node refused to keep.
  void count(std::span<const std::byte> planted) {
    const dht::Opened opened = dht::open_record(planted_under_, planted, network_.now());
    if (const auto* refusal = std::get_if<dht::Refusal>(&opened)) ++refused_[refusal->flaw];
  }
  void run_to(Time time) {
    network_.run_until(time);
    for (const auto& directory : directories_) directory->advance(time);
  }

  dht::FlawCounts refused_;
  dht::Key planted_under_{};
  std::uint64_t planted_ = 0;
  OverlayNetwork network_;
  std::array<std::unique_ptr<OverlayDirectory>, kPlaces> directories_;
};

using ChordHarness = OverlayHarness<dht::OverlayKind::kChord>;
using PastryHarness = OverlayHarness<dht::OverlayKind::kPastry>;
using KademliaHarness = OverlayHarness<dht::OverlayKind::kKademlia>;

}  // namespace

FEDGE_DIRECTORY_SUITE("chord directory", ChordHarness)
FEDGE_DIRECTORY_SUITE("pastry directory", PastryHarness)
FEDGE_DIRECTORY_SUITE("kademlia directory", KademliaHarness)

}  // namespace fedge::sim
