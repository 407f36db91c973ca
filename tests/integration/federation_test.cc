#include "tests/integration/hostile_peer.h"

#include <filesystem>
#include <fstream>

using namespace fedge;
using test::Federation;
using test::HostilePeer;

TEST_CASE("federation: two daemons and a coordinator finish a run over TLS") {
  Federation f(2, {});
  f.add_client();
  f.add_client();
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 2);
  CHECK(f.rounds[1].clients_completed == 2);
  CHECK(f.rounds[1].test_accuracy >= 0.0);
  CHECK(f.rounds[1].bytes_up > 2 * 7850 * 4);
  CHECK(f.rounds[0].model_hash != f.rounds[1].model_hash);
  CHECK(f.rounds[1].model_hash == to_hex(model_hash((*f.final_models)->front().values.values())));
}

TEST_CASE("federation: a wrong, a used and an expired token are refused before anything large can be sent") {
  Federation f(1, {});
  HostilePeer peer(f);
  peer.join("0123456789abcdef0123456789abcdef");
  REQUIRE(!*peer.answer);
  CHECK(peer.answer->error().code == ErrorCode::kRefused);
  CHECK(peer.answer->error().message ==
        "the coordinator refused the connection: this coordinator does not know the join token");
  CHECK(f.reported("client.refused"));
  const std::string secret = f.token();
  HostilePeer first(f);
  first.greet(secret);
  REQUIRE(*first.answer);
  f.run_until([&] { return first.closed; });
  CHECK(!f.reported("client.connected"));  // the client has joined, but does not take part
  HostilePeer second(f);
  second.join(secret);
  CHECK(second.answer->error().message ==
        "the coordinator refused the connection: the join token was already used; ask the operator for a new "
        "one");
}

TEST_CASE("federation: a revoked key is refused at the door, and a connected one is cut off") {
  Federation f(2, {"run.wait_for_clients=2"});
  f.add_client();
  HostilePeer peer(f);
  peer.join(f.token());
  REQUIRE(*peer.answer);
  peer.wait_for_task(1);
  REQUIRE(f.enrolment().revoke((*peer.answer)->client));
  f.run_until([&] { return peer.closed; });
  REQUIRE(peer.goodbye);
  CHECK(peer.goodbye->reason == "this client's key has been revoked");
  peer.greet("");
  REQUIRE(!*peer.answer);
  CHECK(peer.answer->error().message ==
        "the coordinator refused the connection: this client's key has been revoked");
}

TEST_CASE("federation: damaged updates are refused by name and the other client's round goes on") {
  Federation f(2, {"run.wait_for_clients=2", "run.chunk_size=8192"});
  f.add_client();
  HostilePeer peer(f);
  peer.join(f.token());
  REQUIRE(*peer.answer);
  peer.wait_for_task(1);
  auto update = peer.zero_update();
  auto offer = peer.offer(update);
  std::string reason;
  SUBCASE("NaN") {
    update->values()[5000] = std::numeric_limits<float>::quiet_NaN();
    offer = peer.offer(update);
    reason = "dense1.weight[5000]";
  }
  SUBCASE("1e30") {
    update->values()[7845] = 1e30F;
    offer = peer.offer(update);
    reason = "dense1.bias[5]";
  }
  SUBCASE("a chunk that is not what the manifest says") {
    update->values()[3000] = 1.0F;  // after the manifest was computed
    reason = "chunk 1";
  }
  SUBCASE("another layout") {
    offer.update.layout = sha256("another layout");
    reason = "differs from the layout of the model";
  }
  SUBCASE("another coverage") {
    offer.update = protocol::make_manifest(peer.task->model.layout, Coverage::of({{0, 2048}}),
                                           update->bytes().first(8192), 8192);
    reason = "but the task asked for 7850";
  }
  SUBCASE("an impossible weight") {
    offer.samples = SampleCount(1'000'000'000);
    reason = "claims 1000000000 samples";
  }
  peer.send_update(offer, update);
  CHECK(!peer.verdict->accepted);
  CHECK_MESSAGE(peer.verdict->reason.find(reason) != std::string::npos, peer.verdict->reason);
  f.run_until([&] { return !f.rounds.empty(); });
  CHECK(f.rounds[0].clients_completed == 1);
  CHECK(f.reported("round.closed round=1"));
}

TEST_CASE("federation: a replayed update of an earlier round is refused and changes nothing") {
  Federation f(2, {"run.wait_for_clients=2"});
  f.add_client();
  HostilePeer peer(f);
  peer.join(f.token());
  peer.wait_for_task(1);
  const auto update = peer.zero_update();
  const auto first = peer.offer(update);
  peer.send_update(first, update);
  CHECK(peer.verdict->accepted);
  peer.wait_for_task(2);
  peer.send_update(first, update);
  CHECK(!peer.verdict->accepted);
  CHECK(peer.verdict->code == ErrorCode::kStale);
  CHECK(peer.verdict->reason == "round 1 is closed; the current round is 2");
  auto second = peer.offer(update);
  peer.send_update(second, update);
  CHECK(peer.verdict->accepted);
  f.run_to_the_end();
  CHECK(f.rounds[1].clients_completed == 2);
}

TEST_CASE(
    "federation: a client that vanishes mid-round is waited for until the deadline, which is reported") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1", "run.round_deadline=1"});
  f.add_client();
  HostilePeer peer(f);
  peer.join(f.token());
  peer.wait_for_task(1);
  peer.link->close("gone");
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 1);
  CHECK(f.rounds[0].clients_completed == 1);
  CHECK(f.reported("round.closed round=1 reason=\"deadline\" selected=2 completed=1"));
}

TEST_CASE("federation: a vanished client is replaced when there is somebody without work") {
  Federation f(3, {"run.wait_for_clients=3", "run.rounds=1", "sampling.clients_per_round=2"});
  f.add_client();
  HostilePeer one(f);
  one.join(f.token());
  HostilePeer two(f);
  two.join(f.token());
  f.run_until([&] { return one.task || two.task; });
  HostilePeer& chosen = one.task ? one : two;
  HostilePeer& other = one.task ? two : one;
  chosen.link->close("gone");
  // If both hostile clients were selected, the honest one takes over, otherwise the other hostile one.
  f.run_until([&] { return f.reported("client.replaced") && other.task; });
  other.send_update(other.offer(other.zero_update()), other.zero_update());
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 2);
  CHECK(f.reported("client.replaced"));
}

TEST_CASE("federation: messages that are not a client's to send close its link, the run goes on") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1", "run.round_deadline=1"});
  f.add_client();
  HostilePeer peer(f);
  peer.join(f.token());
  peer.wait_for_task(1);
  peer.link->send(protocol::RunEnded{peer.task->run, "says who"});
  f.run_until([&] { return peer.closed; });
  CHECK(f.reported("client.misbehaved"));
  f.run_to_the_end();
}

TEST_CASE("federation: while the enrolment book cannot be read who is in it is let in, and others wait") {
  Federation f(1, {});
  HostilePeer peer(f);
  peer.join(f.token());
  REQUIRE(*peer.answer);
  HostilePeer stranger(f);
  const std::string secret = f.token();
  const auto book = f.directory.path() / "coordinator" / "enrolment.db";
  std::filesystem::rename(book, book.string() + ".kept");
  std::ofstream(book) << "{";
  peer.greet("");
  CHECK(*peer.answer);
  for (const std::string& token : {std::string(), secret}) {
    stranger.greet(token);
    REQUIRE(!*stranger.answer);
    CHECK(stranger.answer->error().code == ErrorCode::kUnavailable);
    CHECK(stranger.answer->error().message ==
          "the coordinator refused the connection: the coordinator cannot check this client's key at "
          "present; try again later");
  }
  f.run_until([&] { return f.count("enrolment.unavailable") == 1; });
  std::filesystem::rename(book.string() + ".kept", book);
  stranger.greet(secret);
  CHECK(*stranger.answer);
  f.run_until([&] { return f.reported("enrolment.available"); });
}

TEST_CASE("federation: a client that finds somebody else at the address tries again") {
  Federation f(1, {});
  const auto state = f.directory.path() / "client";
  auto key = client::open_node_key(state);
  REQUIRE(key);
  REQUIRE(client::write_membership(state, {{f.coordinator->address()}, key->public_key(), ClientId(0)}));
  std::size_t disconnected = 0;
  auto daemon = client::Daemon::create(f.io, {.state_directory = state,
                                              .software = "test",
                                              .backoff = {.first = seconds(0.01), .longest = seconds(0.02)},
                                              .stop_after_run = true,
                                              .on_event = [&](const Event& event) {
                                                if (event.name == "client.disconnected") ++disconnected;
                                              }});
  REQUIRE(daemon);
  (*daemon)->start();
  f.run_until([&] { return disconnected >= 3; });
  CHECK(!(*daemon)->failure());
  const auto second = client::Daemon::create(f.io, {.state_directory = state, .software = "test"});
  REQUIRE(!second);
  CHECK_MESSAGE(second.error().message.find("in use by another process") != std::string::npos,
                second.error().message);
}

TEST_CASE("federation: a daemon may be stopped at any moment and started again in its directory") {
  Federation f(1, {"run.rounds=1000"});
  f.add_client();
  // Stops after an increasing number of handlers, from the first to about the third round.
  for (int handlers = 1; handlers <= 100; ++handlers) {
    for (int i = 0; i < handlers; ++i) f.io.run_one_for(std::chrono::milliseconds(10));
    f.stop_client(0);
    f.start_client(0);  // fails if its predecessor still holds the directory
  }
  CHECK(f.rounds.size() > 1);
}

TEST_CASE("federation: an update that cannot be stored is lost alone, and the client is not blamed") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1"});
  HostilePeer one(f);
  one.join(f.token());
  HostilePeer two(f);
  two.join(f.token());
  one.wait_for_task(1);
  two.wait_for_task(1);
  const auto updates = f.run_directory() / "chunks" / "updates";
  std::filesystem::remove_all(updates);
  one.send_update(one.offer(one.zero_update()), one.zero_update());
  CHECK(!one.verdict->accepted);
  CHECK(one.verdict->reason == "the coordinator could not store this update");
  CHECK(f.reported("update.store_failed client=0"));
  std::filesystem::create_directory(updates);
  two.send_update(two.offer(two.zero_update()), two.zero_update());
  CHECK(two.verdict->accepted);
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 1);
}

TEST_CASE("federation: a coordinator whose disk fails sends its clients away and ends by itself") {
  Federation f(1, {"run.wait_for_clients=1"});
  HostilePeer peer(f);
  peer.join(f.token());
  peer.wait_for_task(1);
  for (const auto& file : std::filesystem::directory_iterator(f.run_directory() / "chunks" / "models"))
    std::filesystem::resize_file(file.path(), 0);
  peer.send_update(peer.offer(peer.zero_update()), peer.zero_update());
  CHECK(peer.verdict->accepted);
  f.run_until([&] { return f.coordinator->failure().has_value() && peer.closed; });
  const std::string reason = f.coordinator->failure()->message;
  CHECK_MESSAGE(reason.find("is shorter than the data stored in it") != std::string::npos, reason);
  CHECK(f.reported("coordinator.failed"));
  CHECK_FALSE(peer.ended);  // the run has not ended: another coordinator may continue it
  CHECK_FALSE(f.final_models.has_value());
  CHECK(f.rounds.empty());
  f.io.run_for(std::chrono::seconds(20));
  CHECK(f.io.stopped());  // no work is pending
}

TEST_CASE("federation: refused updates leave nothing behind in the coordinator's store") {
  // Every update has a value beyond max_abs, which only decoding reveals.
  Federation f(2, {"compression.kind=int8", "strategy.max_abs=1e-6", "run.rounds=20"});
  f.add_client();
  f.add_client();
  std::size_t files = 0;
  f.after_round = [&] {
    files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(f.run_directory() / "chunks" / "updates"))
      if (entry.is_regular_file()) ++files;
  };
  f.run_until([&] { return !f.left.empty(); });
  REQUIRE(f.rounds.size() == 20);
  CHECK(f.count("update.refused") == 40);
  CHECK(files <= 10);                                                  // some files are reused
  CHECK_FALSE(std::filesystem::exists(f.run_directory() / "chunks"));  // the results are written
}
