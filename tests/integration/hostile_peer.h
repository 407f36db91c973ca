// A peer of a federation that the test controls.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "client/handshake.h"
#include "protocol/chunks/chunk_store.h"
#include "tests/integration/federation.h"

namespace fedge::test {

// The update of a hostile peer, honest or not.
class VectorSource final : public protocol::ChunkSource {
 public:
  VectorSource(std::shared_ptr<const ParameterVector> vector, std::size_t chunk_size)
      : vector_(std::move(vector)), chunk_size_(chunk_size) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    std::memcpy(out.data(), vector_->bytes().data() + chunk * chunk_size_ + from, out.size());
    return {};
  }

 private:
  std::shared_ptr<const ParameterVector> vector_;
  std::size_t chunk_size_;
};

// A peer under the test's control: it joins like a client and then follows the test.
class HostilePeer {
 public:
  explicit HostilePeer(Federation& federation) : federation_(federation), key_(SecretKey::generate()) {
    auto made = protocol::make_tls_identity(key_);
    REQUIRE(made);
    identity = *made;
  }

  // Redeems this secret and connects as the new client; `answer` holds the last answer.
  void join(const std::string& secret) {
    greet(secret);
    if (!*answer) return;
    federation_.run_until([&] { return closed; });
    greet("");
  }
  // Connects and says hello with this secret, or with "" as a client that has joined before. Without a
  // coordinator, the answer is the connection's error.
  void greet(const std::string& secret) {
    begin_greeting(secret);
    federation_.run_until([&] { return answer.has_value(); });
  }
  // Like greet(), but does not wait for the answer.
  void begin_greeting(const std::string& secret) {
    answer.reset();
    closed = false;
    protocol::connect(federation_.io, identity, federation_.coordinator->address(),
                      federation_.coordinator_key,
                      [this, secret](Result<std::shared_ptr<protocol::Link>> connected) {
                        closed = !connected;
                        if (!connected) {
                          answer.emplace(connected.error());
                          return;
                        }
                        link = *connected;
                        client::greet(link, "hostile", secret, [this](Result<protocol::Welcome> welcome) {
                          answer = std::move(welcome);
                          if (*answer) listen();
                        });
                      });
  }
  void listen() {
    link->set_callbacks({.on_message =
                             [this](const protocol::Message& message) {
                               if (const auto* run = std::get_if<protocol::RunDescription>(&message))
                                 link->send(protocol::RunAnswer{run->run, true, SampleCount(4), {}, {}});
                               if (const auto* request = std::get_if<protocol::TrainRequest>(&message))
                                 task = *request;
                               if (const auto* swarm = std::get_if<protocol::SwarmMembers>(&message))
                                 members.insert(members.end(), swarm->join.begin(), swarm->join.end());
                               if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message))
                                 shared.push_back(*update);
                               if (const auto* word = std::get_if<protocol::WarmupPlan>(&message))
                                 plan = *word;
                               if (const auto* word = std::get_if<protocol::WarmupOver>(&message))
                                 warm = *word;
                               if (const auto* chunks = std::get_if<protocol::ChunksHeld>(&message))
                                 told.push_back(chunks->object);
                               if (const auto* word = std::get_if<protocol::AggregateUpdates>(&message))
                                 order = *word;
                               if (const auto* word = std::get_if<protocol::UpdateVerdict>(&message))
                                 verdict = *word;
                               if (const auto* word = std::get_if<protocol::Goodbye>(&message))
                                 goodbye = *word;
                               if (std::holds_alternative<protocol::RunEnded>(message)) ended = true;
                               if (hear) hear(message);
                             },
                         .on_closed = [this](const Error&) { closed = true; }});
  }
  void wait_for_task(std::uint32_t round) {
    federation_.run_until([&] { return task && task->round == RoundNumber(round); });
  }

  // An honest offer of these values for the current task.
  protocol::UpdateOffer offer(const std::shared_ptr<ParameterVector>& update) const {
    protocol::UpdateOffer result;
    result.run = task->run;
    result.round = task->round;
    result.update =
        protocol::make_manifest(task->model.layout, task->coverage, update->bytes(), task->model.chunk_size);
    result.samples = SampleCount(4);
    result.steps = 1;
    result.train_loss = 1;
    result.track = task->track;
    return result;
  }
  void send_update(const protocol::UpdateOffer& offered, const std::shared_ptr<ParameterVector>& served) {
    verdict.reset();
    link->serve(offered.update, std::make_shared<VectorSource>(served, offered.update.chunk_size));
    link->send(offered);
    federation_.run_until([&] { return verdict.has_value(); });
  }
  std::shared_ptr<ParameterVector> zero_update() const {
    auto layout = std::make_shared<ParameterLayout>();
    layout->add("all", {task->coverage.count()});
    return std::make_shared<ParameterVector>(layout);
  }

  std::shared_ptr<protocol::TlsIdentity> identity;
  std::optional<Result<protocol::Welcome>> answer;
  std::shared_ptr<protocol::Link> link;
  std::optional<protocol::TrainRequest> task;
  std::optional<protocol::UpdateVerdict> verdict;
  std::optional<protocol::Goodbye> goodbye;
  std::vector<protocol::SwarmMember> members;      // of swarms, as named by the coordinator
  std::vector<protocol::ServerlessUpdate> shared;  // updates of a serverless round
  std::optional<protocol::AggregateUpdates> order;
  std::optional<protocol::WarmupPlan> plan;  // of a round's warm-up
  std::optional<protocol::WarmupOver> warm;
  std::vector<protocol::ObjectId> told;  // objects whose chunks the coordinator has announced
  bool closed = false;
  bool ended = false;                                  // the coordinator has ended the run
  std::function<void(const protocol::Message&)> hear;  // receives each message as well; may be empty
  const SecretKey& key() const { return key_; }

 private:
  Federation& federation_;
  SecretKey key_;
};

}  // namespace fedge::test
