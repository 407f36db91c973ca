// Unwanted connections at a coordinator's port, and their rate.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "tests/integration/hostile_peer.h"

using namespace fedge;
using namespace fedge::test;
using boost::asio::ip::tcp;

namespace {

// Sends this text from this address and waits until the coordinator disconnects.
void knock(Federation& f, const std::string& source, const std::string& text) {
  tcp::socket socket(f.io);
  socket.open(tcp::v4());
  socket.bind({boost::asio::ip::make_address(source), 0});
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), f.coordinator->address().port});
  boost::asio::write(socket, boost::asio::buffer(text));
  socket.non_blocking(true);
  f.run_until([&] {
    char buffer[512];
    boost::system::error_code error;
    socket.read_some(boost::asio::buffer(buffer), error);
    return error && error != boost::asio::error::would_block;
  });
}

}  // namespace

TEST_CASE("A6 row 34: other protocols on the port are one line an address in the log, and the run goes on") {
  Federation f(1, {});
  for (int i = 0; i < 5; ++i) {
    knock(f, "127.0.0.2", "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    knock(f, "127.0.0.3", "SSH-2.0-OpenSSH_9.2\r\n");
  }
  CHECK(f.count("client.refused") == 2);
  CHECK(f.count("client.refused address=\"127.0.0.2:") == 1);
  f.add_client();
  f.run_to_the_end();
}

TEST_CASE("A6 row 39: an enrolment limit that refuses joins is in the coordinator's log, once") {
  Federation f(1, {}, {}, {}, 0, {.enrolments_per_hour_per_token = 1});
  const auto tokens =
      f.enrolment().create_tokens({.uses = 9, .now = 0, .lifetime = std::chrono::hours(1'000'000)});
  REQUIRE(tokens);
  HostilePeer first(f);
  first.greet(tokens->front().secret);
  REQUIRE(*first.answer);
  CHECK_FALSE(f.reported("enrolment.limited"));
  for (int i = 0; i < 3; ++i) {
    HostilePeer next(f);
    next.greet(tokens->front().secret);
    REQUIRE_FALSE(*next.answer);
    CHECK(next.answer->error().code == ErrorCode::kResource);
  }
  CHECK(f.count("enrolment.limited limit=\"limits.enrolments_per_hour_per_token\" address=\"127.0.0.1:") ==
        1);
  CHECK(f.count("enrolment.limited") == 1);
}

TEST_CASE("A6 row 57: a client that connects 16 times without a pause is told to wait, others are let in") {
  Federation f(2, {});
  HostilePeer storm(f);
  storm.join(f.token());
  for (int i = 2; i <= 16; ++i) {
    storm.greet("");
    REQUIRE(*storm.answer);
  }
  storm.greet("");
  REQUIRE(!*storm.answer);
  CHECK(storm.answer->error().code == ErrorCode::kResource);
  CHECK(storm.answer->error().message ==
        "the coordinator refused the connection: this client connects too often; wait a few seconds");
  CHECK(f.reported("connects too often"));
  HostilePeer other(f);
  other.join(f.token());
  CHECK(*other.answer);
}

TEST_CASE("A6 row 56: a client that says more than it was asked is heard a few times, then cut off") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1", "run.round_deadline=1"});
  f.add_client();
  HostilePeer flood(f);
  flood.join(f.token());
  flood.wait_for_task(1);
  auto stale = flood.offer(flood.zero_update());
  stale.round = RoundNumber(7);
  for (int i = 0; i < 5000; ++i) {
    flood.link->send(stale);
    flood.link->send(protocol::RunAnswer{flood.task->run, false, {}, ErrorCode::kInvalid, "no"});
  }
  f.run_until([&] { return flood.closed; });
  REQUIRE(flood.goodbye);
  CHECK(flood.goodbye->reason == "sent more answers than the coordinator requested");
  // Four for its connection and four for its task, minus its first answer.
  CHECK(f.count("update.refused") + f.count("client.declined") == 7);
  CHECK(f.count("client.misbehaved") == 1);
  f.run_to_the_end();
}

TEST_CASE("A6 row 56: a client that publishes records without end is cut off") {
  Federation f(2,
               {"sampling.kind=aw_psp", "status.every_seconds=3600", "run.rounds=1", "run.round_deadline=1"});
  f.add_client();
  HostilePeer flood(f);
  flood.join(f.token());
  flood.wait_for_task(1);
  for (std::uint64_t i = 0; i < 5000; ++i)
    flood.link->send(protocol::PublishRecord{flood.task->run, RoundNumber(1), i, std::vector<std::byte>(50)});
  f.run_until([&] { return flood.closed; });
  REQUIRE(flood.goodbye);
  CHECK(flood.goodbye->reason == "sent more records than the coordinator requested");
  CHECK(f.count("record.refused") == 16);
  CHECK(f.count("client.misbehaved") == 1);
  f.run_to_the_end();
}

TEST_CASE("N2 row 63: a client of another protocol version is told both versions, and lets the run be") {
  Federation f(1, {});
  auto identity = protocol::make_tls_identity(SecretKey::generate());
  REQUIRE(identity);
  for (const std::uint32_t version : {0U, 2U, 99U}) {
    CAPTURE(version);
    std::shared_ptr<protocol::Link> link;
    std::optional<protocol::Goodbye> goodbye;
    bool closed = false;
    protocol::connect(
        f.io, *identity, f.coordinator->address(), f.coordinator_key,
        [&](Result<std::shared_ptr<protocol::Link>> connected) {
          REQUIRE(connected);
          link = *connected;
          link->set_callbacks({.on_message =
                                   [&](const protocol::Message& message) {
                                     if (const auto* word = std::get_if<protocol::Goodbye>(&message))
                                       goodbye = *word;
                                   },
                               .on_closed = [&](const Error&) { closed = true; }});
          link->send(protocol::Hello{
              .min_version = version, .max_version = version, .features = {}, .software = {}, .token = {}});
        });
    f.run_until([&] { return closed; });
    REQUIRE(goodbye);
    if (version == 0) {  // unsupported versions
      CHECK(goodbye->reason.find("not a valid range of versions") != std::string::npos);
      continue;
    }
    const std::string number = std::to_string(version);
    CHECK(goodbye->code == ErrorCode::kUnsupported);
    CHECK(goodbye->reason ==
          "this coordinator supports protocol version 1, but the client supports versions " + number +
              " to " + number);
  }
  f.add_client();
  f.run_to_the_end();
}
