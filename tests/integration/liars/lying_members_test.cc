// Clients that lie to a real coordinator by a script drawn from a seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/integration/hostile_peer.h"
#include "tests/integration/liars/wanted_scripts.h"

namespace fedge::test {
namespace {

constexpr std::size_t kMembers = 3;
constexpr std::uint32_t kRounds = 2;

// A direct run whose members lie independently, with coordinator restarts in between. The test computes its
// own model: the previous one plus the mean of the acknowledged updates.
class LyingMembers {
 public:
  explicit LyingMembers(std::uint64_t seed) : rng_(Rng(seed).fork("lying members")), f(kMembers, {}) {
    for (std::size_t i = 0; i < kMembers; ++i) {
      peers_.push_back(std::make_unique<HostilePeer>(f));
      peers_.back()->hear = [this, i](const protocol::Message& message) { asked(i, message); };
      peers_.back()->join(f.token());
    }
  }
  void play() {
    for (round_ = 1; round_ <= kRounds; ++round_) {
      for (auto& peer : peers_) peer->wait_for_task(round_);
      check(fetched(*peers_[0]));
      std::array<std::size_t, kMembers> order{};
      std::iota(order.begin(), order.end(), 0);
      rng_.shuffle(std::span<std::size_t>(order));
      sum_ = 0;
      weight_ = 0;
      for (const std::size_t member : order) {
        for (std::uint64_t left = rng_.below(4); left > 0; --left) lie(member);
        answer(member, member == order[0]);
        // The last answer ends the round, and members get tasks of the next one.
        if (member != order.back() && rng_.below(3) == 0) restart();
      }
      f.run_until([&] { return f.rounds.size() == round_; });
      for (float& value : model_) value += static_cast<float>(sum_ / weight_);
      done_.assign(kMembers, false);
      accepted_.assign(kMembers, false);
    }
    f.run_to_the_end();
    const auto values = (*f.final_models)->front().values.values();
    check({values.begin(), values.end()});
  }
  std::size_t lies = 0;
  std::size_t restarts = 0;

 private:
  // After a restart, the coordinator may ask a member again if it failed, but not if it delivered.
  void asked(std::size_t member, const protocol::Message& message) {
    const auto* task = std::get_if<protocol::TrainRequest>(&message);
    if (task == nullptr || task->round != RoundNumber(round_) || !done_[member]) return;
    CHECK_FALSE(accepted_[member]);
    fail(*peers_[member]);
  }
  // Sends messages that the member may not send, that were not asked for, or that repeat others. None may
  // have an effect.
  void lie(std::size_t member) {
    HostilePeer& peer = *peers_[member];
    ++lies;
    const protocol::TrainRequest& task = *peer.task;
    protocol::UpdateOffer offer = peer.offer(filled(peer, 1.0F));
    switch (rng_.below(7)) {
      case 0:
        peer.link->close("cut");
        break;
      case 1:
        peer.link->send(
            protocol::TaskFailed{RunId(77), task.round, ErrorCode::kInvalid, "a lie", task.track});
        break;
      case 2:
        peer.link->send(protocol::UpdateVerdict{task.run, task.round, true, {}, "", task.track});
        break;
      case 3:
        peer.link->send(protocol::AggregateMade{task.run, task.round, task.track, offer.update});
        break;
      case 4:
        peer.link->send(protocol::SecureKeys{.session = {task.run, task.round, task.track, 1}, .keys = {}});
        break;
      case 5:
        offer.run = RunId(77);
        peer.link->send(offer);
        break;
      default:
        peer.link->send(protocol::RunEnded{task.run, "a lie"});
    }
    settle(member);
  }
  // Waits until the link has survived or failed; reconnects if it failed.
  void settle(std::size_t member) {
    HostilePeer& peer = *peers_[member];
    protocol::UpdateOffer stale = peer.offer(filled(peer, 2.0F));
    stale.round = RoundNumber(99);
    peer.verdict.reset();
    if (!peer.closed) peer.link->send(stale);
    f.run_until([&] { return peer.closed || peer.verdict; });
    if (!peer.closed) {
      CHECK_FALSE(peer.verdict->accepted);
      return;
    }
    come_back(member);
  }
  void come_back(std::size_t member) {
    HostilePeer& peer = *peers_[member];
    const auto before = peer.task;
    peer.task.reset();
    peer.greet("");
    REQUIRE(*peer.answer);
    if (done_[member])
      peer.task = before;
    else
      peer.wait_for_task(round_);
  }
  void answer(std::size_t member, bool honest) {
    HostilePeer& peer = *peers_[member];
    // Every update differs: the coordinator would not fetch one that it already has.
    const float value = 0.01F * static_cast<float>(++answers_);
    auto update = filled(peer, value);
    const std::uint64_t way = honest ? 0 : rng_.below(6);
    done_[member] = true;
    if (way == 4) return fail(peer);
    auto served = update;
    if (way == 1) update->values()[7] = std::numeric_limits<float>::quiet_NaN();
    if (way == 2) update->values()[7] = 1e6F;
    if (way == 3) served = filled(peer, 5.0F);  // differs from the offer
    peer.send_update(peer.offer(update), served);
    const bool sound = way == 0 || way == 5;
    CHECK(peer.verdict->accepted == sound);
    if (!sound) return;
    accepted_[member] = true;
    sum_ += 4 * static_cast<double>(value);
    weight_ += 4;
    // Another update for the same task, or the same one again.
    if (way == 5 && weight_ < 4 * kMembers) {
      const auto second = filled(peer, 3.0F);
      peer.link->serve(peer.offer(second).update,
                       std::make_shared<VectorSource>(second, peer.task->model.chunk_size));
      peer.link->send(peer.offer(second));
    }
  }
  void fail(HostilePeer& peer) {
    peer.link->send(protocol::TaskFailed{peer.task->run, peer.task->round, ErrorCode::kInvalid, "a lie",
                                         peer.task->track});
  }
  // Restarts the coordinator; updates acknowledged before must be in the model.
  void restart() {
    ++restarts;
    f.restart_coordinator();
    for (std::size_t member = 0; member < kMembers; ++member) {
      f.run_until([&] { return peers_[member]->closed; });
      come_back(member);
    }
  }

  static std::shared_ptr<ParameterVector> filled(const HostilePeer& peer, float value) {
    auto values = peer.zero_update();
    std::ranges::fill(values->values(), value);
    return values;
  }
  std::vector<float> fetched(HostilePeer& peer) {
    const auto store = protocol::make_memory_chunk_store(std::size_t{1} << 20);
    const auto object = store->create(peer.task->model);
    REQUIRE(object);
    bool done = false;
    peer.link->fetch(peer.task->model, *object, [&](const Result<void>& result) {
      REQUIRE(result);
      done = true;
    });
    f.run_until([&] { return done; });
    std::vector<float> values(peer.task->model.coverage.count());
    REQUIRE((*object)->read_bytes(0, std::as_writable_bytes(std::span(values))));
    return values;
  }
  // Compares the coordinator's model with the test's, up to the rounding of sums.
  void check(const std::vector<float>& values) {
    if (model_.empty()) model_ = values;
    REQUIRE(values.size() == model_.size());
    float most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) most = std::max(most, std::abs(values[i] - model_[i]));
    CHECK_MESSAGE(most < 1e-5F,
                  "the model of round " << round_ << " is not the mean of what was acknowledged");
  }

  Rng rng_;

 public:
  Federation f;

 private:
  std::vector<std::unique_ptr<HostilePeer>> peers_;
  std::uint32_t round_ = 0;
  std::vector<bool> done_ = std::vector<bool>(kMembers, false);      // has answered in this round
  std::vector<bool> accepted_ = std::vector<bool>(kMembers, false);  // its update is accepted
  std::vector<float> model_;
  int answers_ = 0;
  double sum_ = 0;
  double weight_ = 0;
};

}  // namespace

TEST_CASE(
    "liars: whatever members say, the model is the mean of the updates that were acknowledged, also after a "
    "restart") {
  std::size_t lies = 0;
  std::size_t restarts = 0;
  const auto scripts = play_scripts(25, [&](std::uint64_t seed) {
    LyingMembers liars(seed);
    liars.play();
    lies += liars.lies;
    restarts += liars.restarts;
  });
  MESSAGE(scripts << " scripts, " << lies << " lies, " << restarts << " restarts");
  if (scripts > 10) CHECK(std::min(lies, restarts) > 0);  // otherwise nothing was tested
}

}  // namespace fedge::test
