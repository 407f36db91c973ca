// A serverless round with a peer that the test controls.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/swarm/serverless_runs.h"
#include "tests/support/settings.h"

namespace fedge::test {

inline constexpr std::size_t kServerlessClients = 6;

inline const std::vector<std::string> kServerlessModel = {"model.kind=mlp", "model.hidden=[64]",
                                                          "run.chunk_size=4096"};

inline std::vector<std::string> serverless(const std::vector<std::string>& more) {
  return kServerlessModel + std::vector<std::string>{"dissemination.kind=serverless"} + more;
}

class Nothing final : public protocol::ChunkSink {
 public:
  bool has(std::size_t) const override { return true; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return {}; }
};

// Sends the peer's answer about each update that it was told of.
inline void answer_all(const HostilePeer& peer, bool sound = true) {
  for (const protocol::ServerlessUpdate& update : peer.shared) {
    protocol::UpdateHeld held{
        .run = update.run, .round = update.round, .track = update.track, .object = update.update.id()};
    if (!sound) {
      held.sound = false;
      held.code = ErrorCode::kInvalid;
      held.reason = "a lie";
    }
    peer.link->send(held);
  }
}

// Honest clients, and a peer in round 1 that follows the test.
struct ServerlessScene {
  std::size_t honest;
  Federation f;
  HostilePeer hostile{f};
  std::vector<std::shared_ptr<protocol::Link>> links;  // the peer's links to the other clients

  explicit ServerlessScene(const std::vector<std::string>& more, std::size_t others = kServerlessClients - 1)
      : honest(others), f(others + 1, serverless(std::vector<std::string>{"run.rounds=1"} + more)) {
    add_listening_clients(f, honest);
    hostile.join(f.token());
    hostile.wait_for_task(1);
  }
  void wait_for_others() {
    f.run_until([&] {
      return hostile.shared.size() >= honest &&
             f.count(f.client_events, "update.checked round=1") >= honest * honest;
    });
  }
  // Offers the peer's update and serves it to the others over the peer's own links.
  void offer(const std::shared_ptr<ParameterVector>& values) {
    const protocol::UpdateOffer offered = hostile.offer(values);
    const auto source = std::make_shared<VectorSource>(values, offered.update.chunk_size);
    f.run_until([&] { return hostile.members.size() == honest; });
    for (const protocol::SwarmMember& member : hostile.members) give(member, offered.update, source);
    f.run_until([&] { return links.size() == honest; });
    hostile.link->send(offered);
  }
  void give(const protocol::SwarmMember& member, const protocol::Manifest& update,
            const std::shared_ptr<protocol::ChunkSource>& source) {
    protocol::connect(f.io, hostile.identity, *protocol::parse_address(member.address), member.key,
                      [=, this](Result<std::shared_ptr<protocol::Link>> connected) {
                        REQUIRE(connected);
                        client::greet(*connected, client::Greeting{.software = "test", .whom = "the member"},
                                      [=, this, link = *connected](const Result<protocol::Welcome>& welcome) {
                                        REQUIRE(welcome);
                                        links.push_back(link);
                                        serve(link, update, source);
                                      });
                      });
  }
  // Announces all chunks once the other end has announced its own.
  static void serve(const std::shared_ptr<protocol::Link>& link, const protocol::Manifest& update,
                    const std::shared_ptr<protocol::ChunkSource>& source) {
    link->set_callbacks({.on_message =
                             [weak = std::weak_ptr(link), update](const protocol::Message& message) {
                               const auto* held = std::get_if<protocol::ChunksHeld>(&message);
                               const auto alive = weak.lock();
                               if (alive && held != nullptr && held->object == update.id())
                                 offer_all(*alive, update);
                             },
                         .on_closed = {}});
    exchange(link, update, source);
  }
  static void offer_all(protocol::Link& link, const protocol::Manifest& object) {
    std::vector<std::byte> bits((object.chunk_count() + 7) / 8, std::byte{0xff});
    if (object.chunk_count() % 8 != 0)
      bits.back() = static_cast<std::byte>((1U << (object.chunk_count() % 8)) - 1);
    link.send(protocol::ChunksHeld{object.id(), bits});
    link.send(protocol::SwarmState{false, false});
  }
  static void exchange(const std::shared_ptr<protocol::Link>& link, const protocol::Manifest& update,
                       const std::shared_ptr<protocol::ChunkSource>& source) {
    REQUIRE(link->exchange(update, source, std::make_shared<Nothing>(),
                           {.on_requested =
                                [weak = std::weak_ptr(link)](const protocol::ChunkRequest& request) {
                                  for (std::uint32_t i = 0; i < request.count; ++i)
                                    if (const auto alive = weak.lock())
                                      (void)alive->send_chunk({request.object, request.first + i});
                                },
                            .on_chunk = [](const protocol::Chunk&, const Result<void>&) {},
                            .on_refused = [](const protocol::ChunkRefused&) {}}));
  }
  std::shared_ptr<ParameterVector> values_of(float value) const {
    auto values = hostile.zero_update();
    std::ranges::fill(values->values(), value);
    return values;
  }
};

// Claims a model of these values for the peer, and serves it on request.
inline protocol::Manifest claim_model(const HostilePeer& peer,
                                      const std::shared_ptr<ParameterVector>& values) {
  const protocol::Manifest model = peer.offer(values).update;
  ServerlessScene::exchange(peer.link, model, std::make_shared<VectorSource>(values, model.chunk_size));
  peer.link->send(protocol::AggregateMade{peer.task->run, peer.task->round, peer.task->track, model});
  return model;
}
// Announces all chunks of the model once the coordinator has announced its own.
inline void show_model(const HostilePeer& peer, const protocol::Manifest& model,
                       const protocol::Message& message) {
  const auto* held = std::get_if<protocol::ChunksHeld>(&message);
  if (held != nullptr && held->object == model.id()) ServerlessScene::offer_all(*peer.link, model);
}

}  // namespace fedge::test
