// Clients of a serverless run, at most half of which lie by a script drawn from a seed, and a real
// coordinator.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/integration/liars/wanted_scripts.h"
#include "tests/integration/swarm/serverless_scene.h"

namespace fedge::test {
namespace {

constexpr std::uint32_t kServerlessRounds = 2;

// Honest clients hold every announced update, accept it, and aggregate the model that the round's order
// determines. Liars collude: they claim the same model.
class LyingVoters {
 public:
  explicit LyingVoters(std::uint64_t seed)
      : rng_(Rng(seed).fork("lying voters")),
        size_(2 + rng_.below(4)),
        liars_(rng_.below(size_ / 2 + 1)),
        f(size_, serverless({"run.rounds=" + std::to_string(kServerlessRounds), "run.round_deadline=5"})) {
    for (std::size_t i = 0; i < size_; ++i) {
      peers_.push_back(std::make_unique<HostilePeer>(f));
      peers_[i]->hear = [this, i](const protocol::Message& message) { heard(i, message); };
      peers_[i]->join(f.token());
      // The test identifies members by their client numbers.
      REQUIRE(*peers_[i]->answer);
      REQUIRE(peers_[i]->answer->value().client == ClientId(static_cast<std::uint32_t>(i)));
    }
  }
  void play() {
    std::size_t restarts_left = rng_.below(3);
    std::size_t next = rng_.below(20);
    while (!f.final_models) {
      const bool restarts = restarts_left > 0 && said_ >= next;
      if (restarts) {
        --restarts_left;
        next = said_ + rng_.below(20);
        ++restarts_;
        f.restart_coordinator();
      }
      f.run_until([&] {
        return f.final_models || (restarts_left > 0 && said_ >= next) ||
               std::ranges::any_of(peers_, [](const auto& peer) { return peer->closed && !peer->ended; });
      });
      for (const auto& peer : peers_)
        if (!f.final_models && peer->closed && !peer->ended) peer->greet("");
    }
    REQUIRE(*f.final_models);
    check();
  }
  std::size_t lies() const { return lies_; }
  std::size_t restarts() const { return restarts_; }
  std::size_t forged() const { return forged_; }
  std::size_t models() const { return models_; }

 private:
  bool lies(std::size_t member) const { return member >= size_ - liars_; }

  void heard(std::size_t member, const protocol::Message& message) {
    HostilePeer& peer = *peers_[member];
    ++said_;
    for (const protocol::Manifest& model : claims_[member].models) show_model(peer, model, message);
    if (lies(member) && rng_.below(12) == 0) {
      ++lies_;
      if (!peer.task || rng_.below(4) == 0) return peer.link->close("cut");
      lie(peer);
    }
    if (const auto* task = std::get_if<protocol::TrainRequest>(&message)) {
      check_model(*task);
      deliver(member);
    }
    if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message)) hold(member, *update);
    if (const auto* order = std::get_if<protocol::AggregateUpdates>(&message)) make(member, *order);
  }
  void deliver(std::size_t member) {
    const HostilePeer& peer = *peers_[member];
    if (lies(member)) switch (rng_.below(8)) {
        case 0:  // the round's own model
          return peer.link->send(with(peer.offer(peer.zero_update()), peer.task->model));
        case 1:
          return fail(peer);
        default:
          break;
      }
    peer.link->send(peer.offer(values(peer, 0.25F + static_cast<float>(member))));
  }
  void hold(std::size_t member, const protocol::ServerlessUpdate& update) {
    protocol::UpdateHeld held{
        .run = update.run, .round = update.round, .track = update.track, .object = update.update.id()};
    if (lies(member) && rng_.below(2) == 0) {
      ++lies_;
      held.sound = false;
      held.reason = "a lie";
    }
    peers_[member]->link->send(held);
  }
  void make(std::size_t member, const protocol::AggregateUpdates& order) {
    HostilePeer& peer = *peers_[member];
    if (peer.task->round != order.round) return;
    if (lies(member)) switch (rng_.below(6)) {
        case 0:
          return fail(peer);
        case 1:
          break;  // tells the truth
        default:
          ++forged_;
          claim(member, values(peer, -7));
          if (rng_.below(2) == 0) return;
      }
    // The value depends on the number of updates; any model that the order determines would do.
    const auto model = values(
        peer, static_cast<float>(order.round.value()) + 0.125F * static_cast<float>(order.parts.size()));
    claim(member, model);
    if (!lies(member)) honest_.insert_or_assign(order.round, peer.offer(model).update.id());
  }
  void claim(std::size_t member, const std::shared_ptr<ParameterVector>& model) {
    const HostilePeer& peer = *peers_[member];
    Claims& claims = claims_[member];
    if (claims.link != peer.link) claims = {.link = peer.link, .models = {}};
    const protocol::Manifest manifest = peer.offer(model).update;
    if (std::ranges::find(claims.models, manifest) == claims.models.end())
      claims.models.push_back(claim_model(peer, model));
  }
  void lie(const HostilePeer& peer) {
    const protocol::TrainRequest& task = *peer.task;
    switch (rng_.below(5)) {
      case 0:  // of an unknown object
        return peer.link->send(
            protocol::UpdateHeld{.run = task.run, .round = task.round, .track = task.track});
      case 1:
        return peer.link->send(protocol::AggregateMade{task.run, task.round, task.track, task.model});
      case 2:
        return peer.link->send(protocol::AggregateMade{task.run, RoundNumber(99), task.track, task.model});
      case 3:
        return fail(peer);
      default:
        return peer.link->send(protocol::RunEnded{task.run, "a lie"});
    }
  }
  static void fail(const HostilePeer& peer) {
    peer.link->send(protocol::TaskFailed{peer.task->run, peer.task->round, ErrorCode::kInvalid, "a lie",
                                         peer.task->track});
  }
  static protocol::UpdateOffer with(protocol::UpdateOffer offer, const protocol::Manifest& update) {
    offer.update = update;
    return offer;
  }
  static std::shared_ptr<ParameterVector> values(const HostilePeer& peer, float value) {
    auto all = peer.zero_update();
    std::ranges::fill(all->values(), value);
    return all;
  }

  // A round starts from the honest clients' model. If the previous round failed and this was reported, it
  // starts from the model before.
  void check_model(const protocol::TrainRequest& task) {
    const auto known = models_of_.emplace(task.round, task.model.id());
    CHECK(known.first->second == task.model.id());
    if (task.round == RoundNumber(1)) return;
    const RoundNumber last(task.round.value() - 1);
    const bool made = honest_.contains(last) && task.model.id() == honest_.at(last);
    const bool kept = came_to_nothing(last) && task.model.id() == models_of_.at(last);
    CHECK_MESSAGE((made || kept), events());
  }
  bool came_to_nothing(RoundNumber round) const {
    return f.reported("round.not_aggregated round=" + std::to_string(round.value()) + " ");
  }

  void check() {
    for (std::size_t i = 0; i < size_ - liars_; ++i) {
      const std::string client = " client=" + std::to_string(i) + " ";
      for (const std::string& event : f.events) {
        CHECK_MESSAGE(
            !(event.starts_with("model.mismatch") && (event + " ").find(client) != std::string::npos), event);
        CHECK_MESSAGE(
            !(event.starts_with("update.refused") && (event + " ").find(client) != std::string::npos), event);
      }
    }
    const auto& last = (*f.final_models)->front().values;
    const protocol::TrainRequest& task = *peers_[0]->task;
    const auto id =
        protocol::make_manifest(task.model.layout, task.model.coverage, last.bytes(), task.model.chunk_size)
            .id();
    const bool made =
        honest_.contains(RoundNumber(kServerlessRounds)) && id == honest_.at(RoundNumber(kServerlessRounds));
    if (made) ++models_;
    const bool kept = came_to_nothing(RoundNumber(kServerlessRounds)) && id == task.model.id();
    CHECK_MESSAGE((made || kept), events());
  }
  std::string events() const {
    std::string all;
    for (const std::string& event : f.events) all += event + "\n";
    return all;
  }

  Rng rng_;
  std::size_t size_;
  std::size_t liars_;

 public:
  Federation f;

 private:
  std::vector<std::unique_ptr<HostilePeer>> peers_;
  struct Claims {
    std::shared_ptr<protocol::Link> link;  // keeps the callbacks alive
    std::vector<protocol::Manifest> models;
  };
  std::map<std::size_t, Claims> claims_;                 // of members
  std::map<RoundNumber, protocol::ObjectId> models_of_;  // start models by round
  std::map<RoundNumber, protocol::ObjectId> honest_;     // models that honest clients have aggregated
  std::size_t said_ = 0;                                 // messages from the coordinator
  std::size_t lies_ = 0;
  std::size_t restarts_ = 0;
  std::size_t forged_ = 0;
  std::size_t models_ = 0;
};

}  // namespace

TEST_CASE(
    "liars: whatever at most half of the clients say, a run without a server takes the others' model or "
    "keeps its "
    "own") {
  std::size_t lies = 0;
  std::size_t restarts = 0;
  std::size_t forged = 0;
  std::size_t models = 0;
  const auto scripts = play_scripts(10, [&](std::uint64_t seed) {
    LyingVoters liars(seed);
    liars.play();
    lies += liars.lies();
    restarts += liars.restarts();
    forged += liars.forged();
    models += liars.models();
  });
  MESSAGE(scripts << " scripts, " << lies << " lies, " << forged << " forged models, " << restarts
                  << " restarts, " << models << " models made");
  if (scripts > 9) CHECK(std::min({lies, forged, restarts, models}) > 0);  // otherwise nothing was tested
}

}  // namespace fedge::test
