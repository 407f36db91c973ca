#include <doctest/doctest.h>

#include "link_fixture.h"

using namespace fedge;
using namespace fedge::protocol;

TEST_CASE("link: both ends know each other by their keys, and a message arrives as it was sent") {
  Loopback net;
  net.join();
  CHECK(net.server.link->peer() == net.client_key.public_key());
  CHECK(net.client.link->peer() == net.server_key.public_key());
  net.client.link->send(Hello{.software = "test 1"});
  REQUIRE(net.run_until([&] { return !net.server.messages.empty(); }));
  CHECK(std::get<Hello>(net.server.messages[0]).software == "test 1");
}

TEST_CASE("link: an object of 5 MB arrives whole in each direction, at the same time") {
  Loopback net;
  net.join();
  const Payload payload(1'250'003);
  auto source = make_memory_chunk_store(16 << 20);
  auto sink = make_memory_chunk_store(16 << 20);
  const auto object = payload.store_in(*source);
  net.server.link->serve(payload.manifest, object);
  net.client.link->serve(payload.manifest, object);
  auto to_client = sink->create(payload.manifest);
  auto other = make_memory_chunk_store(16 << 20);
  auto to_server = other->create(payload.manifest);
  REQUIRE(to_client);
  REQUIRE(to_server);
  std::vector<Result<void>> done;
  net.client.link->fetch(payload.manifest, *to_client, [&](Result<void> result) { done.push_back(result); });
  net.server.link->fetch(payload.manifest, *to_server, [&](Result<void> result) { done.push_back(result); });
  CHECK(done.empty());
  REQUIRE(net.run_until([&] { return done.size() == 2; }));
  CHECK(done[0]);
  CHECK(done[1]);
  CHECK(payload.same_as(**to_client));
  CHECK(payload.same_as(**to_server));
  CHECK(net.client.link->traffic().received.value() > payload.manifest.payload_size);
}
