// A swarm member that breaks the rules, and strangers, over real links. unit_swarm ("hostile peer") measures
// the cost for the others in virtual time.
#include <doctest/doctest.h>

#include <map>

#include "tests/integration/hostile_peer.h"

using namespace fedge;
using test::Federation;
using test::HostilePeer;

namespace {

constexpr std::size_t kHonest = 4;

// Bytes that differ from the model's.
class Garbage final : public protocol::ChunkSource, public protocol::ChunkSink {
 public:
  Result<void> read_part(std::size_t, std::size_t, std::span<std::byte> out) override {
    std::ranges::fill(out, std::byte{0x5a});
    return {};
  }
  bool has(std::size_t) const override { return true; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return {}; }
};

// Four honest clients, a coordinator that takes five seconds to send a model, and one enrolled hostile
// client.
struct HostileScene {
  Federation f{kHonest + 1,
               {"model.kind=mlp", "model.hidden=[64]", "run.chunk_size=4096", "run.rounds=1",
                "run.round_deadline=20", "dissemination.kind=swarm"},
               {},
               {},
               40'000};
  HostilePeer hostile{f};
  std::map<ClientId, std::shared_ptr<protocol::Link>> links;

  HostileScene() {
    f.swarm_of = [](std::size_t) {
      return client::SwarmOptions{.listen = protocol::Address{"127.0.0.1", 0}, .announce = {}};
    };
    for (std::size_t i = 0; i < kHonest; ++i) f.add_client();
    hostile.join(f.token());
    hostile.wait_for_task(1);
    f.run_until([&] { return hostile.members.size() == kHonest; });
  }
  // Connects to a member with this key and returns the answer.
  Result<protocol::Welcome> call(const protocol::SwarmMember& member,
                                 const std::shared_ptr<protocol::TlsIdentity>& identity) {
    std::optional<Result<protocol::Welcome>> answer;
    protocol::connect(f.io, identity, *protocol::parse_address(member.address), member.key,
                      [&](Result<std::shared_ptr<protocol::Link>> connected) {
                        if (!connected) return void(answer = connected.error());
                        links[member.client] = *connected;
                        client::greet(
                            *connected, client::Greeting{.software = "test", .whom = "the member"},
                            [&](Result<protocol::Welcome> welcome) { answer = std::move(welcome); });
                      });
    f.run_until([&] { return answer.has_value(); });
    return *answer;
  }
  // Declines the task, so that the round does not wait for this client.
  void run_to_the_end() {
    hostile.link->send(protocol::TaskFailed{.run = hostile.task->run, .round = hostile.task->round});
    f.run_to_the_end();
    CHECK(f.rounds.front().clients_completed == kHonest);
  }
  // The hostile client offers every chunk and sends garbage.
  void send_rubbish(const protocol::SwarmMember& member) {
    const std::shared_ptr<protocol::Link> link = links.at(member.client);
    const protocol::Manifest& model = hostile.task->model;
    const auto garbage = std::make_shared<Garbage>();
    link->set_callbacks({});
    REQUIRE(link->exchange(model, garbage, garbage,
                           {.on_requested =
                                [link = link.get()](const protocol::ChunkRequest& request) {
                                  for (std::uint32_t i = 0; i < request.count; ++i)
                                    (void)link->send_chunk({request.object, request.first + i});
                                },
                            .on_chunk = [](const protocol::Chunk&, const Result<void>&) {},
                            .on_refused = [](const protocol::ChunkRefused&) {}}));
    std::vector<std::byte> bits((model.chunk_count() + 7) / 8, std::byte{0xff});
    if (model.chunk_count() % 8 != 0)
      bits.back() = static_cast<std::byte>((1U << (model.chunk_count() % 8)) - 1);
    link->send(protocol::ChunksHeld{model.id(), bits});
    link->send(protocol::SwarmState{false, false});
  }
};

}  // namespace

TEST_CASE(
    "swarm, row 62: a member that sends wrong bytes is dropped by everybody, and the others have the model") {
  HostileScene scene;
  for (const auto& member : scene.hostile.members) {
    REQUIRE(scene.call(member, scene.hostile.identity));
    scene.send_rubbish(member);
  }
  scene.f.run_until([&] {
    return Federation::count(
               scene.f.client_events,
               "peer.dropped client=4 reason=\"it sent 3 chunks whose bytes do not match their hash\"") ==
           kHonest;
  });
  // The member does not admit it again.
  const auto again = scene.call(scene.hostile.members.front(), scene.hostile.identity);
  REQUIRE_FALSE(again);
  CHECK(again.error().message ==
        "the member refused the connection: this client exchanges no data with your key at present");
  scene.run_to_the_end();
}

TEST_CASE("swarm: who announces a third party's address is named to nobody, and that is said") {
  Federation f(2, {"run.rounds=1", "dissemination.kind=swarm"});
  f.swarm_of = [](std::size_t) {
    return client::SwarmOptions{.listen = protocol::Address{"127.0.0.1", 0}, .announce = "192.0.2.9:7"};
  };
  HostilePeer hostile(f);
  f.add_client();
  hostile.join(f.token());
  hostile.wait_for_task(1);
  hostile.link->send(protocol::TaskFailed{.run = hostile.task->run, .round = hostile.task->round});
  f.run_to_the_end();
  CHECK(hostile.members.empty());
  CHECK(Federation::count(
            f.events,
            "peer.announce_failed client=0 reason=\"the client announces 192.0.2.9:7 to other clients, but "
            "connects from 127.0.0.1; a client may announce only a port of the address from which it "
            "connects\"") == 1);
}

TEST_CASE("swarm: who announces a port of its own address is named with that") {
  Federation f(2, {"run.rounds=1", "dissemination.kind=swarm"});
  f.swarm_of = [](std::size_t) {
    return client::SwarmOptions{.listen = protocol::Address{"127.0.0.1", 0}, .announce = "127.0.0.1:7"};
  };
  HostilePeer hostile(f);
  f.add_client();
  hostile.join(f.token());
  hostile.wait_for_task(1);
  f.run_until([&] { return !hostile.members.empty(); });
  CHECK(hostile.members.front().address == "127.0.0.1:7");
  hostile.link->send(protocol::TaskFailed{.run = hostile.task->run, .round = hostile.task->round});
  f.run_to_the_end();
}

TEST_CASE("swarm, row 62: whom the coordinator has not named gets no link, whoever it is") {
  HostileScene scene;
  const auto refused = [&](const std::shared_ptr<protocol::TlsIdentity>& identity) {
    const auto answer = scene.call(scene.hostile.members.front(), identity);
    return !answer && answer.error().code == ErrorCode::kUnavailable &&
           answer.error().message.find("this client exchanges no data with your key at present") !=
               std::string::npos;
  };
  CHECK(refused(*protocol::make_tls_identity(SecretKey::generate())));
  SUBCASE("enrolled, without a part in the run") {
    const auto key = SecretKey::generate();
    REQUIRE(scene.f.enrolment().redeem({.secret = scene.f.token(), .key = key.public_key()}));
    CHECK(refused(*protocol::make_tls_identity(key)));
  }
  SUBCASE("a member whose link to the coordinator is gone") {
    REQUIRE(scene.call(scene.hostile.members.front(), scene.hostile.identity));
    scene.hostile.link->close("gone");
    scene.f.run_until([&] { return refused(scene.hostile.identity); });
  }
  SUBCASE("a member that has been revoked") {
    REQUIRE(scene.f.enrolment().revoke(ClientId(kHonest)));
    scene.f.run_until([&] { return refused(scene.hostile.identity); });
  }
}

TEST_CASE("swarm, row 62: a member that says nothing at all keeps nobody from the model") {
  HostileScene scene;
  for (const auto& member : scene.hostile.members) REQUIRE(scene.call(member, scene.hostile.identity));
  scene.run_to_the_end();
}
