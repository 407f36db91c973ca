#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/protocol/link_fixture.h"

using namespace fedge;
using namespace fedge::protocol;

TEST_CASE("link: both ends know each other by their keys, and a message arrives as it was sent") {
  Loopback net;
  net.join();
  CHECK(net.server.link->peer() == net.client_key.public_key());
  CHECK(net.client.link->peer() == net.server_key.public_key());
  CHECK(net.client.link->peer_address() == to_string(net.listener->local_address()));
  net.client.link->send(Hello{.software = "test 1"});
  REQUIRE(net.run_until([&] { return !net.server.messages.empty(); }));
  CHECK(std::get<Hello>(net.server.messages[0]).software == "test 1");
  CHECK(net.client.link->traffic().sent == net.server.link->traffic().received);
}

TEST_CASE("link: an object of 5 MB arrives whole in each direction, at the same time") {
  Loopback net;
  net.join();
  const Payload payload(1'250'003);
  auto source = make_memory_chunk_store(16 << 20);
  const auto object = payload.store_in(*source);
  net.server.link->serve(payload.manifest, object);
  net.client.link->serve(payload.manifest, object);
  Fetch to_client(payload.manifest);
  Fetch to_server(payload.manifest);
  to_client.start(*net.client.link);
  to_server.start(*net.server.link);
  CHECK_FALSE(to_client.outcome);
  REQUIRE(net.run_until([&] { return to_client.outcome && to_server.outcome; }));
  CHECK(*to_client.outcome);
  CHECK(*to_server.outcome);
  CHECK(payload.same_as(*to_client.object));
  CHECK(payload.same_as(*to_server.object));
  CHECK(net.client.link->traffic().received.value() > payload.manifest.payload_size);
  CHECK(net.client.link->traffic().received == net.server.link->traffic().sent);
}

TEST_CASE("link: chunks smaller and larger than the window arrive just the same") {
  for (const std::uint32_t chunk_size : {std::uint32_t{4096}, std::uint32_t{4} << 20}) {
    Loopback net;
    net.join();
    const Payload payload(2'500'001, chunk_size);
    auto source = make_memory_chunk_store(16 << 20);
    net.server.link->serve(payload.manifest, payload.store_in(*source));
    Fetch fetch(payload.manifest);
    fetch.start(*net.client.link);
    REQUIRE(net.run_until([&] { return fetch.outcome.has_value(); }));
    CHECK(*fetch.outcome);
    CHECK(payload.same_as(*fetch.object));
  }
}

TEST_CASE("link: a small object is not held up by a large one, nor is a message") {
  Loopback net;
  net.join();
  const Payload large(10'000'000);
  const Payload small(50'000);
  auto source = make_memory_chunk_store(64 << 20);
  net.server.link->serve(large.manifest, large.store_in(*source));
  net.server.link->serve(small.manifest, small.store_in(*source));
  Fetch large_fetch(large.manifest);
  Fetch small_fetch(small.manifest);
  large_fetch.start(*net.client.link);
  REQUIRE(net.run_until([&] { return large_fetch.object->has(0); }));
  small_fetch.start(*net.client.link);
  net.server.link->send(RunEnded{RunId(1), "now"});
  REQUIRE(net.run_until([&] { return small_fetch.outcome && !net.client.messages.empty(); }));
  CHECK_FALSE(large_fetch.outcome);
  REQUIRE(net.run_until([&] { return large_fetch.outcome.has_value(); }));
  CHECK(*large_fetch.outcome);
}

TEST_CASE("link: only missing chunks travel when a fetch is taken up again") {
  Loopback net;
  net.join();
  const Payload payload(1'000'000);
  auto source = make_memory_chunk_store(16 << 20);
  net.server.link->serve(payload.manifest, payload.store_in(*source));
  Fetch fetch(payload.manifest);
  for (std::size_t i = 1; i < payload.manifest.chunk_count(); ++i)
    REQUIRE(fetch.object->write(
        i, payload.bytes().subspan(i * payload.manifest.chunk_size, payload.manifest.chunk_length(i))));
  fetch.start(*net.client.link);
  REQUIRE(net.run_until([&] { return fetch.outcome.has_value(); }));
  CHECK(payload.same_as(*fetch.object));
  CHECK(net.client.link->traffic().received.value() < payload.manifest.chunk_size + 1000);
}

TEST_CASE(
    "link: an object that is here already is fetched without the peer, and not before the call returns") {
  Loopback net;
  net.join();
  const Payload payload(10);
  Fetch fetch(payload.manifest);
  REQUIRE(fetch.object->write(0, payload.bytes()));
  fetch.start(*net.client.link);
  CHECK_FALSE(fetch.outcome);
  REQUIRE(net.run_until([&] { return fetch.outcome.has_value(); }));
  CHECK(*fetch.outcome);
}

TEST_CASE("link: a chunk that is not what the manifest says ends the fetch as corrupt, not the link") {
  Loopback net;
  net.join();
  const Payload payload(500'000);
  auto source = make_memory_chunk_store(16 << 20);
  const auto object = payload.store_in(*source);
  net.server.link->serve(payload.manifest, std::make_shared<FalseSource>(3, object));
  Fetch fetch(payload.manifest);
  fetch.start(*net.client.link);
  REQUIRE(net.run_until([&] { return fetch.outcome.has_value(); }));
  REQUIRE_FALSE(*fetch.outcome);
  CHECK(fetch.outcome->error().code == ErrorCode::kCorrupt);
  CHECK(fetch.outcome->error().message.find("chunk 3 ") != std::string::npos);
  CHECK_FALSE(fetch.object->has(3));
  net.server.link->serve(payload.manifest, object);
  Fetch again(payload.manifest);
  again.start(*net.client.link);
  REQUIRE(net.run_until([&] { return again.outcome.has_value(); }));
  CHECK(*again.outcome);
  CHECK(fetch.calls == 1);
}

TEST_CASE("link: an object that is not served, and one that cannot be read, fail with the peer's reason") {
  Loopback net;
  net.join();
  const Payload payload(500'000);
  Fetch unserved(payload.manifest);
  unserved.start(*net.client.link);
  REQUIRE(net.run_until([&] { return unserved.outcome.has_value(); }));
  CHECK(unserved.outcome->error().code == ErrorCode::kNotFound);
  auto source = make_memory_chunk_store(16 << 20);
  net.server.link->serve(payload.manifest,
                         std::make_shared<FalseSource>(2, payload.store_in(*source),
                                                       Error{ErrorCode::kUnavailable, "the disk said no"}));
  Fetch broken(payload.manifest);
  broken.start(*net.client.link);
  REQUIRE(net.run_until([&] { return broken.outcome.has_value(); }));
  CHECK(broken.outcome->error().message.find("the disk said no") != std::string::npos);
  CHECK_FALSE(net.client.closed);
}

TEST_CASE("link: a cancelled fetch calls nobody, and the link goes on") {
  Loopback net;
  net.join();
  const Payload payload(2'000'000);
  auto source = make_memory_chunk_store(16 << 20);
  net.server.link->serve(payload.manifest, payload.store_in(*source));
  Fetch fetch(payload.manifest);
  fetch.start(*net.client.link);
  REQUIRE(net.run_until([&] { return fetch.object->has(1); }));
  net.client.link->cancel_fetch(payload.manifest.id());
  Fetch again(payload.manifest);
  again.start(*net.client.link);
  REQUIRE(net.run_until([&] { return again.outcome.has_value(); }));
  CHECK(*again.outcome);
  CHECK(payload.same_as(*again.object));
  CHECK(fetch.calls == 0);
  Fetch whole(payload.manifest);
  whole.object = again.object;
  whole.start(*net.client.link);
  net.client.link->cancel_fetch(payload.manifest.id());
  net.client.link->send(Hello{});
  REQUIRE(net.run_until([&] { return !net.server.messages.empty(); }));
  CHECK(whole.calls == 0);
}

TEST_CASE("link: closing while fetching fails the fetch on both ends, once, and reports the end once") {
  Loopback net;
  net.join();
  const Payload payload(5'000'000);
  auto source = make_memory_chunk_store(64 << 20);
  const auto object = payload.store_in(*source);
  net.server.link->serve(payload.manifest, object);
  net.client.link->serve(payload.manifest, object);
  Fetch to_client(payload.manifest);
  Fetch to_server(payload.manifest);
  to_client.start(*net.client.link);
  to_server.start(*net.server.link);
  REQUIRE(net.run_until([&] { return to_client.object->has(0); }));
  net.client.link->close("enough");
  CHECK_FALSE(net.client.closed);
  REQUIRE(net.run_until([&] { return net.client.closed && net.server.closed; }));
  CHECK(net.client.closed->message == "enough");
  CHECK(to_client.outcome->error().code == ErrorCode::kUnavailable);
  CHECK(to_server.outcome->error().code == ErrorCode::kUnavailable);
  net.client.link->close("again");
  net.client.link->send(Hello{});
  Fetch late(payload.manifest);
  late.start(*net.client.link);
  REQUIRE(net.run_until([&] { return late.outcome.has_value(); }));
  CHECK(late.outcome->error().code == ErrorCode::kUnavailable);
  CHECK(net.client.closed_count == 1);
  CHECK(net.server.closed_count == 1);
  CHECK(to_client.calls == 1);
}

TEST_CASE("link: what was queued before close arrives, and a goodbye's reason is how the peer learns why") {
  Loopback net;
  net.join();
  for (int i = 0; i < 100; ++i)
    net.server.link->send(CancelTask{RunId(1), RoundNumber(1), std::string(1000, 'x')});
  net.server.link->send(Goodbye{ErrorCode::kStale, "come back tomorrow"});
  net.server.link->close("tired");
  REQUIRE(net.run_until([&] { return net.client.closed.has_value(); }));
  CHECK(net.client.messages.size() == 101);
  CHECK(net.client.closed->code == ErrorCode::kStale);
  CHECK(net.client.closed->message == "the peer closed the connection: come back tomorrow");
  REQUIRE(net.run_until([&] { return net.server.closed.has_value(); }));
  CHECK(net.server.closed->message == "tired");
}

TEST_CASE("link: callbacks may replace themselves, close the link and let it go") {
  Loopback net;
  net.join();
  int first = 0;
  int second = 0;
  bool closed = false;
  Link& link = *net.server.link;
  link.set_callbacks({.on_message =
                          [&, text = std::string(100, 'a')](const Message&) {
                            ++first;
                            link.set_callbacks({.on_message =
                                                    [&](const Message&) {
                                                      ++second;
                                                      link.close("had enough");
                                                      net.server.link.reset();
                                                    },
                                                .on_closed = [&](const Error&) { closed = true; }});
                            CHECK(text.size() == 100);
                          },
                      .on_closed = {}});
  for (int i = 0; i < 5; ++i) net.client.link->send(Hello{});
  REQUIRE(net.run_until([&] { return closed; }));
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("link: idle ends keep each other alive with pings") {
  const Timeouts quick{.ping = std::chrono::milliseconds(20), .idle = std::chrono::milliseconds(1000)};
  Loopback net;
  net.join({.timeouts = quick}, quick);
  const std::uint64_t before = net.client.link->traffic().received.value();
  REQUIRE(net.run_until([&] { return net.client.link->traffic().received.value() >= before + 20 * 16; }));
  CHECK_FALSE(net.client.closed);
  CHECK_FALSE(net.server.closed);
}

TEST_CASE("A6 row 53: a half-open connection, of whose peer nothing is heard, is given up") {
  const Timeouts quick{.ping = std::chrono::milliseconds(40), .idle = std::chrono::milliseconds(120)};
  Loopback net;
  // The client's end never answers: its io_context does not run.
  net.listen({.timeouts = quick});
  boost::asio::io_context other;
  std::shared_ptr<Link> silent;
  connect(other, net.client_identity, net.listener->local_address(), net.server_key.public_key(),
          [&](Result<std::shared_ptr<Link>> link) { silent = *link; });
  REQUIRE(net.run_until([&] {
    if (!silent) other.poll();
    return silent && net.server.link;
  }));
  REQUIRE(net.run_until([&] { return net.server.closed.has_value(); }));
  CHECK(net.server.closed->code == ErrorCode::kUnavailable);
  CHECK(net.server.closed->message.find("has sent nothing for") != std::string::npos);
}
