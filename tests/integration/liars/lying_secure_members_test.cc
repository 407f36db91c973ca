// A lying member of secure sums, whose script is drawn from a seed, among honest client daemons. The real
// coordinator restarts in between.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/integration/liars/wanted_scripts.h"
#include "tests/integration/secure/secure_member.h"
#include "tests/support/settings.h"

namespace fedge::test {
namespace {

using fedge::test::operator+;

constexpr std::size_t kHonestMembers = 4;

class LyingSecureMember {
 public:
  explicit LyingSecureMember(std::uint64_t seed)
      : rng_(Rng(seed).fork("lying secure member")),
        f(kHonestMembers + 1, {"run.rounds=1", "run.round_deadline=4", "secure_aggregation.kind=exact",
                               "secure_aggregation.patience=0.3"}) {
    for (std::size_t i = 0; i < kHonestMembers; ++i) f.add_client();
    constexpr LastWord kLast[] = {LastWord::kKeys, LastWord::kShares, LastWord::kUpdate, LastWord::kConsent,
                                  LastWord::kAll,  LastWord::kAll,    LastWord::kAll,    LastWord::kAll};
    member_ = std::make_unique<SecureMember>(f, kLast[rng_.below(std::size(kLast))]);
    member_->says = [this](protocol::Message& message) { return twist(message); };
    member_->offers = [this](std::vector<std::byte>& words) { garble(words); };
  }
  // Returns the model after the round; nothing if it was not aggregated.
  std::optional<std::string> play() {
    bool restarts = rng_.below(3) == 0;
    const std::size_t when = rng_.below(6);
    while (!f.final_models) {
      f.run_until([&] {
        return f.final_models || (restarts && said_ >= when) ||
               (member_->peer.closed && !member_->peer.ended && !member_->gone);
      });
      if (f.final_models) break;
      if (restarts && said_ >= when) {
        restarts = false;
        ++restarted_;
        f.restart_coordinator();
        f.run_until([&] { return member_->peer.closed || member_->gone; });
      }
      if (!member_->gone) member_->peer.greet("");
    }
    REQUIRE(*f.final_models);
    // Honest clients stay connected and consistent to the end, whatever the member does.
    CHECK_FALSE(f.reported("client.refused"));
    for (const auto& daemon : f.daemons) CHECK_FALSE(daemon->failure());
    if (f.reported("round.not_aggregated round=1")) return std::nullopt;
    return f.hashes()[0];
  }
  std::size_t lies() const { return lies_; }
  std::size_t restarts() const { return restarted_; }
  bool garbled() const { return garbled_; }
  std::string events() const {
    std::string all;
    for (const std::string& event : f.events) all += event + "\n";
    for (const std::string& event : f.client_events) all += "of a client: " + event + "\n";
    return all;
  }

 private:
  template <class Bytes>
  void flip(Bytes& bytes) {
    bytes[rng_.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << rng_.below(8));
  }
  // Changes the message at random; returns whether it is sent.
  bool twist(protocol::Message& message) {
    ++said_;
    if (rng_.below(2) != 0) return true;
    ++lies_;
    const std::uint64_t way = rng_.below(8);
    if (way == 0) return false;
    if (way == 1) {
      member_->peer.link->send(message);  // a duplicate
      return true;
    }
    if (auto* keys = std::get_if<protocol::SecureKeys>(&message)) {
      if (way < 4) flip(keys->keys.signature);
      if (way == 4) flip(keys->keys.mask.bytes);
      if (way == 5) flip(keys->keys.commitment);
      if (way > 5) keys->session.attempt += 1;
    }
    if (auto* shares = std::get_if<protocol::SecureShares>(&message)) {
      auto& one = shares->shares[rng_.below(shares->shares.size())];
      if (way < 4) flip(one.box);
      if (way == 4) flip(one.check);
      if (way == 5) shares->shares.pop_back();
      if (way == 6) one.to = 99;
      if (way == 7) std::swap(shares->shares.front().box, shares->shares.back().box);
    }
    if (auto* consent = std::get_if<protocol::SecureConsent>(&message)) flip(consent->signature);
    if (auto* unmask = std::get_if<protocol::SecureUnmask>(&message)) {
      if (way < 5 && !unmask->survivors.empty())
        flip(unmask->survivors[rng_.below(unmask->survivors.size())].self_mask);
      if (way == 5 && !unmask->survivors.empty()) unmask->survivors.pop_back();
      if (way == 6)
        for (auto& dropped : unmask->dropped) flip(dropped.mask_key);
      if (way == 7)
        for (auto& dropped : unmask->dropped) flip(dropped.pair_key);
    }
    return true;
  }
  void garble(std::vector<std::byte>& words) {
    if (rng_.below(6) != 0) return;
    ++lies_;
    garbled_ = true;
    for (std::byte& byte : words) byte ^= static_cast<std::byte>(rng_.below(256));
  }

  Rng rng_;

 public:
  Federation f;

 private:
  std::unique_ptr<SecureMember> member_;
  std::size_t said_ = 0;
  std::size_t lies_ = 0;
  std::size_t restarted_ = 0;
  bool garbled_ = false;
};

}  // namespace

TEST_CASE(
    "liars: whatever a member of a secure sum says, the sum is that of the honest and its own, that of the "
    "honest, "
    "or there is none") {
  const std::string with = hash_without_secrets(kHonestMembers, true);
  const std::string without = hash_without_secrets(kHonestMembers, false);
  REQUIRE(with != without);
  std::size_t lies = 0;
  std::size_t restarts = 0;
  std::size_t sums = 0;
  const auto scripts = play_scripts(5, [&](std::uint64_t seed) {
    LyingSecureMember liar(seed);
    const auto model = liar.play();
    lies += liar.lies();
    restarts += liar.restarts();
    if (!model) return;
    ++sums;
    CHECK_MESSAGE((*model == without || (*model == with && !liar.garbled())), liar.events());
  });
  MESSAGE(scripts << " scripts, " << lies << " lies, " << restarts << " restarts, " << sums << " sums");
  if (scripts > 4) CHECK(std::min(lies, sums) > 0);  // otherwise nothing was tested
  if (scripts > 20) CHECK(restarts > 0);
}

}  // namespace fedge::test
