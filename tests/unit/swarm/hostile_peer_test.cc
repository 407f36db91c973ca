// The cost of one hostile peer among fourteen honest ones, compared with a swarm whose fifteenth peer is
// honest. peer_rules.h states the bounds.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {
namespace {

constexpr std::uint64_t kHostileLine = 2'500'000;  // 20 Mbit/s
constexpr std::uint32_t kPeers = 15;
constexpr ClientId kHostile{kPeers - 1};
constexpr std::size_t kChunks = 256;

struct HostileScene {
  VirtualSwarm swarm;
  protocol::Manifest manifest = manifest_of(kChunks);
  protocol::ObjectId object = manifest.id();

  HostileScene() {
    PeerRules rules;
    rules.upload_limit = kHostileLine;
    swarm.add(kCoordinator, rules);
    for (std::uint32_t i = 0; i < kPeers; ++i) swarm.add(ClientId(i), rules);
  }
  void begin() {
    swarm.share(manifest);
    swarm.link_all();
  }
  // Returns the seconds until all others have the object.
  double finish() {
    REQUIRE(swarm.run([&] { return swarm.everybody_has(object, {kHostile}); }, 900));
    return swarm.last(object, {kHostile});
  }
  double copies() const {
    return static_cast<double>(swarm.peer(kCoordinator).figures().sent) /
           static_cast<double>(manifest.payload_size);
  }
  // Returns how many peers, including the coordinator, have dropped the hostile peer.
  std::size_t droppers() const {
    std::size_t count = 0;
    for (const auto& [by, whom] : swarm.dropped) count += whom == kHostile && by != kHostile;
    return count;
  }
  bool honest_dropped() const {
    return std::ranges::any_of(swarm.dropped, [](const auto& one) { return one.second != kHostile; });
  }
};

// Returns the time with an honest fifteenth peer.
double undisturbed() {
  static const double time = [] {
    HostileScene scene;
    scene.begin();
    return scene.finish();
  }();
  return time;
}

// The hostile peer tells each peer that it has every chunk.
bool boasts(HostileScene& scene, const Peer::Effect& effect) {
  const auto* send = std::get_if<Peer::Send>(&effect);
  if (send == nullptr) return false;
  const auto* held = std::get_if<protocol::ChunksHeld>(&send->message);
  if (held == nullptr) return std::holds_alternative<protocol::ChunksAdded>(send->message);
  scene.swarm.at(scene.swarm.now() + scene.swarm.delay, [&scene, to = send->peer] {
    scene.swarm.step(
        to, Peer::Received{kHostile, protocol::ChunksHeld{scene.object, ChunkSet::full(kChunks).bytes()}});
  });
  return true;
}

// Peers request chunks from it, since it never chokes; `answer` decides its answer.
void hear_requests(HostileScene& scene, const std::function<void(ClientId, const protocol::Chunk&)>& answer) {
  for (std::uint32_t i = 0; i < kPeers - 1; ++i)
    scene.swarm.instead[ClientId(i)] = [&scene, i, answer](const Peer::Effect& effect) {
      const auto* ask = std::get_if<Peer::Ask>(&effect);
      if (ask == nullptr || ask->peer != kHostile) return false;
      scene.swarm.at(scene.swarm.now() + 2 * scene.swarm.delay,
                     [answer, i, chunk = ask->chunk] { answer(ClientId(i), chunk); });
      return true;
    };
}

}  // namespace

TEST_CASE(
    "hostile peer, row 62: who sends wrong bytes is dropped by each after three, and nobody waits for it") {
  HostileScene scene;
  scene.swarm.instead[kHostile] = [&](const Peer::Effect& effect) {
    const auto* chunk = std::get_if<Peer::SendChunk>(&effect);
    if (chunk == nullptr) return false;
    scene.swarm.at(scene.swarm.now() + scene.swarm.delay, [&scene, effect = *chunk] {
      scene.swarm.step(effect.peer, Peer::Arrived{kHostile, effect.chunk, false});
    });
    return true;
  };
  scene.begin();
  const double time = scene.finish();
  INFO("seconds ", time, " of ", undisturbed(), ", dropped by ", scene.droppers(), ", copies ",
       scene.copies());
  CHECK(scene.droppers() > 0);
  CHECK_FALSE(scene.honest_dropped());
  for (std::uint32_t i = 0; i < kPeers - 1; ++i) {
    CHECK(scene.swarm.peer(ClientId(i)).figures().bad <= 3);
    CHECK(scene.swarm.peer(ClientId(i)).torrent(scene.object)->complete());
  }
  CHECK(time <= undisturbed() + 5);
}

TEST_CASE(
    "hostile peer, row 62: who says that it has everything and refuses to send it is dropped, and costs "
    "seconds") {
  HostileScene scene;
  ErrorCode code = ErrorCode::kUnavailable;
  SUBCASE("because it chokes, which it has not said") {}
  bool anew = false;
  SUBCASE("because it has ended its exchange, and says again that it has everything") {
    code = ErrorCode::kNotFound;
  }
  SUBCASE("because it has ended its exchange, and begins anew with everything") {
    code = ErrorCode::kNotFound;
    anew = true;
  }
  scene.swarm.instead[kHostile] = [&](const Peer::Effect& effect) { return boasts(scene, effect); };
  std::map<ClientId, std::size_t> told;
  hear_requests(scene, [&](ClientId by, const protocol::Chunk& chunk) {
    scene.swarm.step(by, Peer::Refused{kHostile, {chunk.object, chunk.index, 1, {code, "no"}}});
    const auto all = ChunkSet::full(kChunks).bytes();
    if (++told[by] <= 100)
      scene.swarm.step(by, Peer::Received{kHostile, protocol::ChunksHeld{scene.object, all, {}, anew}});
  });
  scene.begin();
  const double time = scene.finish();
  INFO("seconds ", time, " of ", undisturbed(), ", dropped by ", scene.droppers(), ", copies ",
       scene.copies());
  CHECK(scene.droppers() >= kPeers - 1);
  CHECK_FALSE(scene.honest_dropped());
  CHECK(time <= undisturbed() + 10);
}

TEST_CASE(
    "hostile peer, row 62: who says that it has everything and is silent costs the time that it is given, "
    "once") {
  HostileScene scene;
  scene.swarm.instead[kHostile] = [&](const Peer::Effect& effect) { return boasts(scene, effect); };
  hear_requests(scene, [](ClientId, const protocol::Chunk&) {});
  scene.begin();
  const double time = scene.finish();
  INFO("seconds ", time, " of ", undisturbed(), ", copies ", scene.copies());
  CHECK_FALSE(scene.honest_dropped());
  CHECK(time <= undisturbed() + 10);
}

TEST_CASE(
    "hostile peer, row 62: who sends a chunk now and then holds up the others no longer than a silent one") {
  HostileScene scene;
  scene.swarm.line[kHostile] = 16 << 10;  // a chunk takes 16 s
  scene.begin();
  const double time = scene.finish();
  INFO("seconds ", time, " of ", undisturbed(), ", copies ", scene.copies());
  CHECK_FALSE(scene.honest_dropped());
  CHECK(time <= undisturbed() + 10);
}

TEST_CASE("hostile peer, row 62: who asks over and over gets no chunk twice, and is dropped") {
  HostileScene scene;
  scene.begin();
  (void)scene.swarm.run([] { return false; }, 3);
  const ClientId victim{0};
  const std::uint64_t sent = scene.swarm.peer(victim).figures().sent;
  const auto& has = scene.swarm.peer(victim).torrent(scene.object)->held;
  std::uint32_t chunk = 0;
  while (!has.has(chunk)) ++chunk;
  for (int i = 0; i < 1000; ++i)
    scene.swarm.step(victim, Peer::Requested{kHostile, {scene.object, chunk, 1}});
  CHECK(scene.swarm.peer(victim).figures().sent - sent <= 2 * manifest_of(1).payload_size);
  // The victim drops it at once.
  (void)scene.swarm.run([] { return false; }, 3.001);
  CHECK(scene.droppers() == 1);
  CHECK(scene.swarm.reasons.front() == "it requests chunks again that it already received");
  CHECK(scene.finish() <= undisturbed() + 5);
}

TEST_CASE("hostile peer, row 62: who asks for what it has not been told of is dropped") {
  HostileScene scene;
  scene.begin();
  (void)scene.swarm.run([] { return false; }, 1);
  SUBCASE("of a peer") {
    const auto& has = scene.swarm.peer(ClientId(0)).torrent(scene.object)->held;
    std::uint32_t chunk = 0;
    while (has.has(chunk)) ++chunk;
    for (int i = 0; i < 20; ++i)
      scene.swarm.step(ClientId(0), Peer::Requested{kHostile, {scene.object, chunk, 1}});
  }
  SUBCASE("of the coordinator, which has it") {
    const auto& shown = scene.swarm.peer(kCoordinator).torrent(scene.object)->shares.at(kHostile).shown;
    std::uint32_t chunk = 0;
    while (shown.has(chunk)) ++chunk;
    for (int i = 0; i < 20; ++i)
      scene.swarm.step(kCoordinator, Peer::Requested{kHostile, {scene.object, chunk, 1}});
  }
  (void)scene.swarm.run([] { return false; }, 1.001);
  CHECK(scene.droppers() == 1);
  CHECK(scene.finish() <= undisturbed() + 5);
}

TEST_CASE("hostile peer, row 62: chunks that an object does not have end the link at once") {
  HostileScene scene;
  scene.begin();
  (void)scene.swarm.run([] { return false; }, 1);
  protocol::Message message;
  SUBCASE("added") { message = protocol::ChunksAdded{scene.object, {kChunks}}; }
  SUBCASE("held, a byte too many") {
    message = protocol::ChunksHeld{scene.object, std::vector<std::byte>(kChunks / 8 + 1)};
  }
  SUBCASE("held, a byte too few") {
    message = protocol::ChunksHeld{scene.object, std::vector<std::byte>(kChunks / 8 - 1)};
  }
  SUBCASE("wanted, a byte too many") {
    message = protocol::ChunksHeld{scene.object, std::vector<std::byte>(kChunks / 8),
                                   std::vector<std::byte>(kChunks / 8 + 1)};
  }
  scene.swarm.step(ClientId(0), Peer::Received{kHostile, message});
  (void)scene.swarm.run([] { return false; }, 1.001);
  CHECK(scene.droppers() == 1);
  CHECK(scene.finish() <= undisturbed() + 5);
}

TEST_CASE("hostile peer, row 62: what belongs to an object that is not exchanged any more is not heeded") {
  HostileScene scene;
  const auto old = manifest_of(kChunks, 256 << 10, 9);
  scene.begin();
  (void)scene.swarm.run([] { return false; }, 1);
  for (const protocol::Message& message :
       {protocol::Message(protocol::ChunksHeld{old.id(), ChunkSet::full(kChunks).bytes()}),
        protocol::Message(protocol::ChunksAdded{old.id(), {0, 1, 2}}),
        protocol::Message(protocol::ChunkCancelled{old.id(), 5})})
    for (int i = 0; i < 100; ++i) scene.swarm.step(ClientId(0), Peer::Received{kHostile, message});
  scene.swarm.step(ClientId(0), Peer::Requested{kHostile, {old.id(), 0, 1}});
  scene.swarm.step(ClientId(0), Peer::Arrived{kHostile, {old.id(), 0}, true});
  scene.swarm.step(ClientId(0), Peer::Refused{kHostile, {old.id(), 0, 3, {ErrorCode::kNotFound, "no"}}});
  CHECK(scene.finish() == doctest::Approx(undisturbed()).epsilon(0.05));
  CHECK(scene.droppers() == 0);
}

TEST_CASE("hostile peer, row 62: interest that comes and goes moves nobody else's slot for long") {
  HostileScene scene;
  scene.begin();
  for (int i = 1; i <= 2000; ++i)
    scene.swarm.at(Time(seconds(i * 0.01)), [&scene, i] {
      for (std::uint32_t to = 0; to < kPeers - 1; ++to)
        scene.swarm.step(ClientId(to),
                         Peer::Received{kHostile, protocol::SwarmState{i % 3 == 0, i % 2 == 0}});
    });
  const double time = scene.finish();
  INFO("seconds ", time, " of ", undisturbed());
  CHECK(time <= undisturbed() + 5);
  CHECK_FALSE(scene.honest_dropped());
}

}  // namespace fedge::swarm
