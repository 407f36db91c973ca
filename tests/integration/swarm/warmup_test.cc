// Serverless rounds with a warm-up, which hides whose update is whose.
#include <doctest/doctest.h>

#include "tests/integration/swarm/serverless_runs.h"
#include "tests/support/settings.h"

using namespace fedge;
using test::add_listening_clients;
using test::Federation;
using test::hashes_of;
using test::HostilePeer;

namespace {

constexpr std::size_t kWarmupClients = 9;

const std::vector<std::string> kServerless = {"model.kind=mlp", "model.hidden=[64]", "run.chunk_size=4096",
                                              "dissemination.kind=serverless"};
const std::vector<std::string> kWarmup = {"dissemination.warmup.scheduler=greedy_fastest_first",
                                          "dissemination.warmup.degree=4"};

using fedge::test::operator+;

// Eight honest clients, and a member of round 1 that observes.
struct WarmupScene {
  Federation f;
  HostilePeer curious{f};
  std::vector<std::shared_ptr<protocol::Link>> links;
  std::size_t held = 0;   // announcements of neighbours
  std::size_t shown = 0;  // of which some announced a chunk
  protocol::UpdateOffer offered;

  explicit WarmupScene(const std::vector<std::string>& more)
      : f(kWarmupClients, kServerless + kWarmup + std::vector<std::string>{"run.rounds=1"} + more) {
    add_listening_clients(f, kWarmupClients - 1);
    curious.join(f.token());
    curious.wait_for_task(1);
  }
  // Takes part in the warm-up and learns its neighbours.
  void enter() {
    curious.members.clear();
    offered = curious.offer(curious.zero_update());
    curious.link->send(offered);
    f.run_until(
        [&] { return curious.plan && !curious.members.empty() && curious.shared.size() == kWarmupClients; });
    for (const protocol::SwarmMember& member : curious.members) listen_to(member);
  }
  void listen_to(const protocol::SwarmMember& member) {
    protocol::connect(f.io, curious.identity, *protocol::parse_address(member.address), member.key,
                      [this](Result<std::shared_ptr<protocol::Link>> connected) {
                        REQUIRE(connected);
                        client::greet(*connected, client::Greeting{.software = "test", .whom = "the member"},
                                      [this, link = *connected](const Result<protocol::Welcome>& welcome) {
                                        REQUIRE(welcome);
                                        links.push_back(link);
                                        link->set_callbacks({.on_message = [this](const auto& m) { note(m); },
                                                             .on_closed = {}});
                                      });
                      });
  }
  void note(const protocol::Message& message) {
    const auto* chunks = std::get_if<protocol::ChunksHeld>(&message);
    if (chunks == nullptr || curious.warm) return;
    if (std::ranges::none_of(curious.shared, [&](const auto& u) { return u.update.id() == chunks->object; }))
      return;
    ++held;
    if (std::ranges::any_of(chunks->bits, [](std::byte bits) { return bits != std::byte{}; })) ++shown;
  }
  // Announces every chunk, so that its neighbours do not wait for it.
  void say_that_it_has_everything() const {
    for (const protocol::ServerlessUpdate& update : curious.shared) {
      std::vector<std::byte> bits((update.update.chunk_count() + 7) / 8, std::byte{0xff});
      if (update.update.chunk_count() % 8 != 0)
        bits.back() = static_cast<std::byte>((1U << (update.update.chunk_count() % 8)) - 1);
      curious.link->send(protocol::ChunksHeld{update.update.id(), bits});
    }
  }
};

}  // namespace

TEST_CASE("warm-up: the models are those of the run without one, and nothing of it is voided") {
  const std::vector<std::string> more = {"run.rounds=3"};
  Federation f(kWarmupClients, kServerless + kWarmup + more);
  add_listening_clients(f, kWarmupClients);
  f.run_to_the_end();
  CHECK(f.hashes() == hashes_of(kWarmupClients, kServerless + more));
  CHECK(f.count(f.events, "round.warmup_ended") == 3);
  CHECK(f.count(f.events, "failed_open") == 0);
  CHECK(f.count(f.events, "excluded=0") == 3);
  // Each of nine owners of 50 chunks is to spray ten of them. How many are in time depends on the machine;
  // unit_swarm and unit_sim check the numbers in virtual time.
  CHECK(f.count(f.events, " sprayed=") == 3);
  CHECK(f.count(f.events, " sprayed=0 ") == 0);
  CHECK(f.count(f.client_events, "warmup.ended") == 3 * kWarmupClients);
  CHECK(f.count(f.client_events, "warmup.audit_failed") == 0);
  CHECK(f.count(f.client_events, "peer.dropped") == 0);
}

TEST_CASE("warm-up: a neighbour is shown nothing of what others have until it is over") {
  WarmupScene scene({"run.round_deadline=8"});
  scene.enter();
  scene.f.run_until([&] { return scene.held >= 4 * kWarmupClients; });
  CHECK(scene.shown == 0);
  scene.say_that_it_has_everything();
  scene.f.run_until([&] { return scene.curious.warm.has_value(); });
  CHECK(scene.shown == 0);
  scene.curious.link->close("gone");
  scene.f.run_to_the_end();
}

TEST_CASE("warm-up: a member that does nothing is left out of it, and the others go on without a loss") {
  WarmupScene scene({"run.round_deadline=20"});
  scene.enter();
  scene.f.run_until([&] { return scene.curious.warm.has_value(); });
  CHECK(scene.curious.warm->failure == "");
  CHECK(scene.f.reported("members=9"));
  CHECK(scene.f.reported("excluded=1"));
  scene.curious.link->close("gone");
  scene.f.run_to_the_end();
  CHECK(
      scene.f.reported("round.updates_exchanged round=1 reconstructable=8 participants=8 refused=0 lost=1"));
}

TEST_CASE(
    "warm-up: where too few clients are left for one, updates are exchanged all the same, and it is said") {
  Federation f(2, kServerless + kWarmup +
                      std::vector<std::string>{"run.rounds=1", "sampling.clients_per_round=4",
                                               "data.partition.clients=4", "run.wait_for_clients=2"});
  add_listening_clients(f, 2);
  f.run_to_the_end();
  CHECK(f.count(f.events, "failed_open=\"dissemination.warmup: nodes must be 3 to 5000\"") == 1);
  CHECK(f.reported("reconstructable=2"));
}
