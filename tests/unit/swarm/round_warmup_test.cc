// Whole warm-ups in virtual time: the peers of daemons execute the tracker's orders.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "swarm/warmup/audit.h"
#include "swarm/warmup/obfuscation.h"
#include "swarm/warmup/round_warmup.h"
#include "tests/unit/swarm/virtual_swarm.h"

namespace fedge::swarm {
namespace {

constexpr RunId kRun{7};
constexpr TaskId kTask{RoundNumber(1), TrackId(0)};

WarmupConfig small_round() {
  return {.nodes = 12,
          .chunks = 30,
          .degree = 4,
          .spray_ratio = 0.2,
          .relayed = true,
          .order = ChunkOrder::kRandom};
}

// Members 0 to n - 1, each with an update.
class WarmupScene {
 public:
  explicit WarmupScene(
      const WarmupConfig& config, std::uint64_t seed = 1,
      const std::function<bool(ClientId)>& listens = [](ClientId) { return true; })
      : config_(config) {
    std::vector<RoundWarmup::Member> members;
    for (std::uint32_t i = 0; i < config.nodes; ++i) {
      updates.push_back(manifest_of(config.chunks, 16 << 10, static_cast<std::uint8_t>(i + 1)));
      members.push_back({ClientId(i), updates.back().id(), listens(ClientId(i))});
    }
    auto begun = RoundWarmup::begin(config, members, {seed, seed + 100});
    REQUIRE(begun);
    warmup = std::make_unique<RoundWarmup>(std::move(*begun));
    net.add(kCoordinator);
    for (const auto& update : updates) {
      const ChunkSet none(config.chunks);
      net.step(kCoordinator, Peer::Open{update, none, none, {}, {}});
    }
    for (std::uint32_t i = 0; i < config.nodes; ++i) join(ClientId(i), listens);
    tick();
  }

  void join(ClientId client, const std::function<bool(ClientId)>& listens) {
    net.add(client);
    // Observes each effect and executes it.
    net.instead[client] = [this, client](const Peer::Effect& effect) {
      look_at(client, effect);
      return silent.contains(client) && std::holds_alternative<Peer::SendChunk>(effect);
    };
    plans.push_back(warmup->plan(client, kRun, kTask));
    net.step(client, Peer::BeginWarmup{plans.back(), updates[client.value()].id()});
    for (const auto& update : updates) {
      const bool own = update == updates[client.value()];
      const ChunkSet all = ChunkSet::full(config_.chunks);
      net.step(client, Peer::Open{update, own ? all : ChunkSet(config_.chunks), all, {}, warmup->swarm()});
      net.step(client, Peer::Admit{update.id(), kCoordinator});
      net.step(kCoordinator, Peer::Admit{update.id(), client});
      for (const ClientId other : warmup->neighbours(client))
        net.step(client, Peer::Admit{update.id(), other});
    }
    net.links.link(kCoordinator, client);
    for (const ClientId other : warmup->neighbours(client))
      if (other < client && (listens(other) || listens(client))) net.links.link(other, client);
  }

  const ChunkSet* look(ClientId client, const protocol::ObjectId& object) const {
    const Torrent* torrent = net.peer(kCoordinator).torrent(object);
    const auto share = torrent->shares.find(client);
    return share == torrent->shares.end() || !share->second.heard ? nullptr : &share->second.has;
  }

  void tick() {
    const auto orders = warmup->go_on(
        net.now(), [this](ClientId client, const auto& object) { return look(client, object); }, kRun, kTask);
    for (const auto& [client, slot] : orders)
      net.at(net.now() + net.delay, [this, client = client, slot = slot] {
        net.step(client, Peer::Slot{warmup->swarm(), slot});
      });
    if (!warmup->over()) return net.at(net.now() + RoundWarmup::kTick, [this] { tick(); });
    for (std::uint32_t i = 0; i < config_.nodes; ++i) {
      if (net.links.has(ClientId(i))) foreign_at_end[ClientId(i)] = foreign(ClientId(i));
      net.step(ClientId(i), Peer::EndWarmup{warmup->swarm()});
    }
  }

  std::size_t foreign(ClientId client) const {
    std::size_t count = 0;
    for (const auto& update : updates)
      if (!(update == updates[client.value()])) count += net.peer(client).torrent(update.id())->held.count();
    return count;
  }

  void look_at(ClientId client, const Peer::Effect& effect) {
    if (warmup->over()) return;
    if (const auto* sent = std::get_if<Peer::SendChunk>(&effect)) {
      const bool own = sent->chunk.object == updates[client.value()].id();
      if (own) {
        own_sent[client].insert(sent->chunk.index);
        fewest_covering = std::min(fewest_covering, foreign(client) + config_.kappa);
      }
      ++transfers;
    }
    if (const auto* sealed = std::get_if<Peer::SendSealed>(&effect)) sprays[client].push_back(sealed->spray);
    const auto* send = std::get_if<Peer::Send>(&effect);
    if (send == nullptr || send->peer == kCoordinator) return;
    if (std::holds_alternative<protocol::ChunksAdded>(send->message)) ++told;
    if (const auto* held = std::get_if<protocol::ChunksHeld>(&send->message))
      told += static_cast<std::size_t>(
          std::ranges::count_if(held->bits, [](auto b) { return b != std::byte{}; }));
  }

  bool run(double seconds = 600) {
    return net.run([this] { return warmup->over() && foreign_at_end.size() > 0; }, seconds);
  }
  std::size_t complete() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        net.completed, [&](const auto& entry) { return entry.second.size() == updates.size(); }));
  }

  std::vector<protocol::Manifest> updates;
  VirtualSwarm net;
  std::unique_ptr<RoundWarmup> warmup;
  std::vector<protocol::WarmupPlan> plans;
  std::set<ClientId> silent;  // clients that send no chunk
  // Observations of the warm-up.
  std::map<ClientId, std::set<std::uint32_t>> own_sent;
  std::size_t fewest_covering = SIZE_MAX;
  std::map<ClientId, std::vector<protocol::WarmupSlot::Spray>> sprays;
  std::size_t transfers = 0;
  std::size_t told = 0;  // announcements to neighbours
  std::map<ClientId, std::size_t> foreign_at_end;

 private:
  WarmupConfig config_;
};

}  // namespace

TEST_CASE("warm-up: by every scheduler everybody comes to hold k chunks of others, and then everything") {
  for (const SchedulerEntry& entry : schedulers()) {
    CAPTURE(entry.name);
    WarmupConfig config = small_round();
    config.scheduler = entry.name;
    WarmupScene scene(config);
    REQUIRE(scene.run());
    CHECK(scene.warmup->failure().empty());
    CHECK(scene.foreign_at_end.size() == config.nodes);
    for (const auto& [client, foreign] : scene.foreign_at_end) CHECK(foreign >= cover_size(config));
    CHECK(scene.told == 0);
    REQUIRE(scene.net.run([&] { return scene.complete() == config.nodes; }, 600));
  }
}

TEST_CASE("invariants 4 and 5: warm-up: own chunks leave behind a cover set, at most kappa of them") {
  for (const std::size_t kappa : {0U, 1U, 3U}) {
    WarmupConfig config = small_round();
    config.kappa = kappa;
    if (kappa > 0) config.threshold = 0.155;  // sprayed chunks alone do not suffice
    WarmupScene scene(config);
    REQUIRE(scene.run());
    REQUIRE(scene.warmup->failure().empty());
    for (const auto& [client, chunks] : scene.own_sent) CHECK(chunks.size() <= kappa);
    if (kappa == 0) CHECK(scene.own_sent.empty());
    if (kappa > 0) {
      CHECK(scene.own_sent.size() > 0);
      CHECK(scene.fewest_covering >= gate_size(config));
    }
  }
}

TEST_CASE("invariant 6: warm-up: each owner sprays sigma chunks, each over a neighbour to another client") {
  WarmupScene scene(small_round());
  REQUIRE(scene.run());
  CHECK(scene.sprays.size() == 12);
  CHECK(scene.warmup->figures().sprayed == 12 * 6);
  CHECK(scene.warmup->figures().not_sprayed == 0);
  std::size_t to_neighbours = 0;
  for (const auto& [client, sprays] : scene.sprays) {
    std::set<std::uint32_t> chunks;
    const auto neighbours = scene.warmup->neighbours(client);
    const auto is_neighbour = [&](ClientId other) {
      return std::ranges::find(neighbours, other) != neighbours.end();
    };
    for (const auto& spray : sprays) {
      CHECK(chunks.insert(spray.chunk).second);
      CHECK(is_neighbour(spray.over));
      CHECK(spray.to != spray.over);
      CHECK(spray.to != client);
      if (is_neighbour(spray.to)) ++to_neighbours;
    }
    CHECK(chunks.size() == 6);
  }
  // Otherwise no chunk sprayed to a client would come from a neighbour.
  CHECK(to_neighbours > 0);
  CHECK(to_neighbours < 12 * 6);
}

TEST_CASE("warm-up: what is ordered is what is sent, and the tracker hears of all of it") {
  WarmupScene scene(small_round());
  REQUIRE(scene.run());
  const auto& figures = scene.warmup->figures();
  CHECK(figures.transfers + figures.blended >= scene.transfers);
  CHECK(figures.transfers <= scene.transfers);
  CHECK(figures.slots > 0);
  std::size_t own = 0;
  for (const auto& [client, chunks] : scene.own_sent) own += chunks.size();
  CHECK(figures.owner_transfers >= own);
  CHECK(figures.owner_transfers <= figures.transfers);
}

// A client that requests chunks of all updates but one would reveal that this one is its own.
TEST_CASE("warm-up: clients ask for chunks of their own updates about as often as others do") {
  WarmupConfig config = small_round();
  config.threshold = 0.155;
  std::size_t own = 0;
  std::size_t all = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    WarmupScene scene(config, seed);
    for (std::uint32_t i = 0; i < 12; ++i)
      scene.net.instead[ClientId(i)] = [&, i](const Peer::Effect& effect) {
        const auto* ask = std::get_if<Peer::Ask>(&effect);
        if (ask == nullptr || scene.warmup->over()) return false;
        ++all;
        own += ask->chunk.object == scene.updates[i].id() ? 1U : 0U;
        return false;
      };
    REQUIRE(scene.run());
    CHECK(scene.warmup->failure().empty());
    CHECK(scene.warmup->figures().blended > 0);
  }
  CHECK(12 * own > all / 2);
  CHECK(12 * own < all * 2);
}

TEST_CASE("warm-up: a client audits its neighbours by the seed that was committed to") {
  WarmupScene scene(small_round());
  for (const protocol::WarmupPlan& plan : scene.plans) {
    CHECK(audit_plan(plan, scene.warmup->overlay_seed()));
    CHECK(audit_plan(plan, scene.warmup->overlay_seed() + 1).error().code == ErrorCode::kCorrupt);
    protocol::WarmupPlan other = plan;
    other.neighbours.pop_back();
    CHECK(audit_plan(other, scene.warmup->overlay_seed()).error().code == ErrorCode::kRefused);
  }
}

TEST_CASE("warm-up: where clients do not listen, it goes on over the links that there are") {
  WarmupScene scene(small_round(), 3, [](ClientId client) { return client.value() % 3 != 0; });
  REQUIRE(scene.run());
  CHECK(scene.warmup->failure().empty());
  CHECK(scene.warmup->figures().left_out == 0);
}

TEST_CASE(
    "warm-up: one who sends nothing costs its links, and one who vanishes its chunks, but not the rest") {
  WarmupScene scene(small_round());
  scene.silent.insert(ClientId(4));
  scene.net.at(Time(std::chrono::milliseconds(300)), [&] {
    scene.net.kill(ClientId(9));
    scene.warmup->leave(ClientId(9));
  });
  REQUIRE(scene.run(60));
  CHECK(scene.warmup->failure().empty());
  CHECK(scene.warmup->figures().left_out >= 1);
  for (const auto& [client, foreign] : scene.foreign_at_end)
    if (client != ClientId(4)) CHECK(foreign >= cover_size(small_round()));
  CHECK(to_seconds(scene.net.now().time_since_epoch()) < 30);
}

// Nearly all circulating chunks are needed, also those that the silent client holds.
TEST_CASE("warm-up: a neighbour that does not send is asked for five seconds, and by nobody again") {
  WarmupConfig config = small_round();
  config.threshold = 0.155;
  WarmupScene scene(config);
  scene.silent.insert(ClientId(4));
  std::map<ClientId, std::pair<double, double>> asked;  // first and last request, by client
  for (std::uint32_t i = 0; i < 12; ++i)
    if (i != 4)
      scene.net.instead[ClientId(i)] = [&, i](const Peer::Effect& effect) {
        const auto* ask = std::get_if<Peer::Ask>(&effect);
        if (ask == nullptr || ask->peer != ClientId(4) || scene.warmup->over()) return false;
        const double now = scene.net.seconds_now();
        asked.try_emplace(ClientId(i), now, now).first->second.second = now;
        return false;
      };
  REQUIRE(scene.run(60));
  CHECK(scene.warmup->failure().empty());
  CHECK(asked.size() > 1);
  for (const auto& [client, times] : asked) CHECK(times.second - times.first < 5);
}

TEST_CASE("warm-up: one who opens everything, and then does nothing at all, holds the rest up for a while") {
  WarmupScene scene(small_round());
  scene.net.instead[ClientId(4)] = [](const Peer::Effect& effect) {
    const auto* send = std::get_if<Peer::Send>(&effect);
    return std::holds_alternative<Peer::Ask>(effect) || std::holds_alternative<Peer::SendChunk>(effect) ||
           std::holds_alternative<Peer::SendSealed>(effect) ||
           (send != nullptr && std::holds_alternative<protocol::SealedChunk>(send->message));
  };
  REQUIRE(scene.run(60));
  CHECK(scene.warmup->failure().empty());
  CHECK(scene.warmup->figures().left_out == 1);
  CHECK(scene.warmup->figures().not_sprayed >= 6);
  for (const auto& [client, foreign] : scene.foreign_at_end)
    if (client != ClientId(4)) CHECK(foreign >= cover_size(small_round()));
  CHECK(to_seconds(scene.net.now().time_since_epoch()) < 40);
}

// Two chunks take nearly as long as the timeout of one.
TEST_CASE("warm-up: who has a slow line is not taken for one who sends nothing") {
  WarmupScene scene(small_round());
  scene.net.line[ClientId(3)] = 2 * (16 << 10) / 4.4;
  REQUIRE(scene.run());
  CHECK(scene.warmup->failure().empty());
  CHECK(scene.warmup->figures().left_out == 0);
  CHECK(scene.warmup->figures().not_sprayed == 0);
}

TEST_CASE("warm-up: what a neighbour does not send is asked of another, when the tracker says so") {
  WarmupScene scene(small_round());
  const auto neighbours = scene.warmup->neighbours(ClientId(0));
  const auto wanted = scene.updates[neighbours[2].value()].id();
  std::vector<ClientId> asked;
  scene.net.instead[ClientId(0)] = [&](const Peer::Effect& effect) {
    const auto* ask = std::get_if<Peer::Ask>(&effect);
    if (ask == nullptr || !(ask->chunk == protocol::Chunk{wanted, 5})) return false;
    asked.push_back(ask->peer);
    return true;  // the answer never arrives
  };
  REQUIRE(scene.net.run([&] { return scene.net.seconds_now() > 0.04; }, 1));
  const auto order = [&](ClientId from) {
    scene.net.step(ClientId(0), Peer::Slot{scene.warmup->swarm(),
                                           {.run = kRun, .asks = {{wanted, 5, from}}, .sprays = {}}});
  };
  order(neighbours[0]);
  order(neighbours[1]);
  order(neighbours[1]);
  CHECK(asked == std::vector<ClientId>{neighbours[0], neighbours[1]});
}

TEST_CASE("warm-up: lags that are longer than the patience with silent ones are waited for") {
  WarmupConfig config = small_round();
  config.lag = 200;
  WarmupScene scene(config);
  REQUIRE(scene.run(60));
  CHECK(scene.warmup->failure().empty());
}

TEST_CASE("warm-up: one who is linked in the middle of it is shown nothing either") {
  WarmupScene scene(small_round());
  const ClientId other = scene.warmup->neighbours(ClientId(0)).front();
  std::size_t links = 0;
  std::function<void()> relink = [&] {
    if (scene.warmup->over()) return;
    if (scene.foreign(ClientId(0)) > 0) ++links;
    scene.net.links.unlink(ClientId(0), other);
    scene.net.links.link(ClientId(0), other);
    scene.net.at(scene.net.now() + std::chrono::milliseconds(60), relink);
  };
  scene.net.at(Time(std::chrono::milliseconds(100)), relink);
  REQUIRE(scene.run(60));
  CHECK(links > 0);
  CHECK(scene.told == 0);
}

TEST_CASE("warm-up: one who never opens the updates is left out after five seconds") {
  WarmupScene scene(small_round());
  scene.net.kill(ClientId(2));  // no peer has noticed
  REQUIRE(scene.run(60));
  CHECK(scene.warmup->failure().empty());
  CHECK(scene.warmup->figures().left_out == 1);
  CHECK(to_seconds(scene.net.now().time_since_epoch()) < 10);
}

TEST_CASE("warm-up: where the rest can get no cover set it is given up, with the reason") {
  WarmupScene scene(small_round());
  for (std::uint32_t i = 2; i < 12; ++i)
    scene.net.at(Time(std::chrono::milliseconds(100)), [&, i] {
      scene.net.kill(ClientId(i));
      scene.warmup->leave(ClientId(i));
    });
  REQUIRE(scene.run(60));
  CHECK_FALSE(scene.warmup->failure().empty());
}

TEST_CASE(
    "warm-up: a neighbour that asks for what the gate holds back is refused like what is not there, and "
    "dropped") {
  WarmupScene scene(small_round());
  const ClientId curious = scene.warmup->neighbours(ClientId(0)).front();
  std::size_t refused = 0;
  scene.net.instead[ClientId(0)] = [&](const Peer::Effect& effect) {
    if (const auto* no = std::get_if<Peer::RefuseChunk>(&effect))
      if (no->peer == curious && no->error.code == ErrorCode::kInvalid) ++refused;
    return false;
  };
  for (std::uint32_t chunk = 0; chunk < 30; ++chunk)
    scene.net.step(ClientId(0), Peer::Requested{curious, {scene.updates[0].id(), chunk, 1}});
  CHECK(refused == PeerRules{}.strikes);
  CHECK(scene.own_sent[ClientId(0)].empty());
  REQUIRE(scene.run(60));
  CHECK(std::ranges::find(scene.net.dropped, std::pair(ClientId(0), curious)) != scene.net.dropped.end());
  CHECK(scene.warmup->failure().empty());
}

TEST_CASE("warm-up: whoever asks for what it may not is not forgiven for coming back over a new link") {
  WarmupScene scene(small_round());
  const ClientId curious = scene.warmup->neighbours(ClientId(0)).front();
  for (std::uint32_t chunk = 0; chunk < 30; ++chunk) {
    scene.net.links.unlink(ClientId(0), curious);
    scene.net.links.link(ClientId(0), curious);
    scene.net.step(ClientId(0), Peer::Requested{curious, {scene.updates[0].id(), chunk, 1}});
  }
  REQUIRE(scene.run());
  CHECK(std::ranges::find(scene.net.dropped, std::pair(ClientId(0), curious)) != scene.net.dropped.end());
}

TEST_CASE("warm-up: nobody but a neighbour gets anything") {
  WarmupScene scene(small_round());
  const auto neighbours = scene.warmup->neighbours(ClientId(0));
  std::uint32_t other = 1;
  while (std::ranges::find(neighbours, ClientId(other)) != neighbours.end()) ++other;
  const ClientId stranger(other);
  scene.net.links.link(ClientId(0), stranger);
  // A false announcement tells client 0 that the stranger takes part.
  for (const auto& update : scene.updates) scene.net.step(ClientId(0), Peer::Admit{update.id(), stranger});
  std::size_t refused = 0;
  std::size_t sent = 0;
  scene.net.instead[ClientId(0)] = [&](const Peer::Effect& effect) {
    if (const auto* no = std::get_if<Peer::RefuseChunk>(&effect)) refused += no->peer == stranger ? 1U : 0U;
    if (const auto* chunk = std::get_if<Peer::SendChunk>(&effect)) sent += chunk->peer == stranger ? 1U : 0U;
    return false;
  };
  REQUIRE(scene.net.run([&] { return scene.foreign(ClientId(0)) > 0; }, 60));
  for (const auto& update : scene.updates) {
    const ChunkSet& held = scene.net.peer(ClientId(0)).torrent(update.id())->held;
    if (update == scene.updates[0] || held.count() == 0) continue;
    std::uint32_t chunk = 0;
    while (!held.has(chunk)) ++chunk;
    scene.net.step(ClientId(0), Peer::Requested{stranger, {update.id(), chunk, 1}});
    break;
  }
  CHECK(refused == 1);
  REQUIRE(scene.run());
  CHECK(sent == 0);
}

TEST_CASE("warm-up: a tracker that asks for too much is not heeded") {
  WarmupConfig config = small_round();
  WarmupScene scene(config);
  const protocol::WarmupPlan plan = scene.plans[0];
  WarmupMember member(plan, scene.updates[0].id(), Rng(1));
  const auto own = [&](std::uint32_t chunk) { return protocol::Chunk{scene.updates[0].id(), chunk}; };
  const auto neighbours = scene.warmup->neighbours(ClientId(0));
  std::vector<ClientId> strangers;
  for (std::uint32_t i = 1; i < 12; ++i)
    if (std::ranges::find(neighbours, ClientId(i)) == neighbours.end()) strangers.emplace_back(i);
  const auto spray = [&](std::uint32_t chunk, ClientId over, ClientId to) {
    return member.may_spray({chunk, over, to, {}});
  };
  CHECK_FALSE(spray(0, neighbours[0], neighbours[0]));
  CHECK_FALSE(spray(0, strangers[0], strangers[1]));
  CHECK_FALSE(spray(30, neighbours[0], strangers[0]));
  for (std::uint32_t chunk = 0; chunk < 6; ++chunk) CHECK(spray(chunk, neighbours[0], strangers[0]));
  CHECK_FALSE(spray(6, neighbours[0], strangers[0]));  // more than sigma
  CHECK(spray(5, neighbours[1], strangers[0]));        // the same chunk over another neighbour
  CHECK_FALSE(spray(5, neighbours[0], strangers[1]));
  // No chunk of its own is sent or announced before the gate opens.
  for (std::uint32_t chunk = 0; chunk < 30; ++chunk) {
    CHECK_FALSE(member.shows(own(chunk)));
    CHECK_FALSE(member.may_send(own(chunk)));
  }
  // Each neighbour may have this many chunks relayed, a stranger none.
  for (std::size_t i = 0; i < 2 * 6; ++i) CHECK(member.may_relay(neighbours[0], neighbours[1]));
  CHECK_FALSE(member.may_relay(neighbours[0], neighbours[1]));
  CHECK_FALSE(member.may_relay(strangers[0], neighbours[1]));
  CHECK_FALSE(member.may_relay(neighbours[1], strangers[0]));
  // A client accepts as many sealed chunks of an update as its owner sprays, and only from neighbours.
  CHECK_FALSE(member.takes_sealed(strangers[0], scene.updates[1].id()));
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(member.takes_sealed(neighbours[i % 2], scene.updates[1].id()));
    member.unsealed(scene.updates[1].id());
  }
  CHECK_FALSE(member.takes_sealed(neighbours[0], scene.updates[1].id()));
  CHECK(member.takes_sealed(neighbours[0], scene.updates[2].id()));
}

TEST_CASE(
    "invariant 5: warm-up: nothing is sent before the lag has passed, and what was asked for comes then") {
  protocol::WarmupPlan plan{
      .members = 3, .number = 0, .degree = 2, .chunks = 4, .cover = 2, .kappa = 1, .lag = 3};
  const protocol::ObjectId own{1};
  const protocol::ObjectId other{2};
  WarmupMember member(plan, own, Rng(1));
  const auto news = member.receive({other, 3});
  REQUIRE(news.size() == 2);  // the chunk and, with a cover of two, one of its own
  CHECK(news[0] == protocol::Chunk{other, 3});
  CHECK(news[1].object == own);
  CHECK(member.shows(news[1]));
  for (const std::uint32_t slot : {0U, 1U, 2U, 1U}) {
    member.enter(slot);
    CHECK_FALSE(member.may_send(news[0]));
  }
  member.enter(3);
  CHECK(member.may_send(news[0]));
  CHECK(member.may_send(news[1]));
  member.enter(1);  // an outdated message
  CHECK(member.may_send(news[0]));
  CHECK(member.receive({other, 3}).empty());
  CHECK(member.receive({other, 4}).empty());
}

TEST_CASE("spray: a chunk that goes over a neighbour comes to one who has it as well") {
  const Overlay overlay = Overlay::random(40, 3, Rng(5));
  const Universe universe(40, 10, Rng(6));
  const auto sent = spray(overlay, universe, 4, SprayTo{.relayed = true}, Rng(7));
  REQUIRE(sent);
  CHECK(sent->size() == 160);
  for (const Transfer& transfer : *sent) {
    CHECK_FALSE(overlay.adjacent(transfer.from, transfer.to));
    CHECK(transfer.from != transfer.to);
    std::size_t common = 0;
    for (Pseudonym peer = 0; peer < 40; ++peer)
      common += overlay.adjacent(peer, transfer.from) && overlay.adjacent(peer, transfer.to) ? 1U : 0U;
    CHECK(common > 0);
    CHECK(common_neighbours(overlay, transfer.from, transfer.to).size() == common);
  }
}

}  // namespace fedge::swarm
