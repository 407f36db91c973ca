// Peers that occupy a connection with minimal traffic.
#include <doctest/doctest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "protocol/chunks/chunk_messages.h"
#include "tests/unit/protocol/raw_peer.h"

using namespace fedge;
using namespace fedge::protocol;
using boost::asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

// Passes on a few bytes of a text every five milliseconds.
class Drip {
 public:
  Drip(Loopback& net, std::string text, std::size_t at_once, std::function<void(const std::string&)> take)
      : timer_(net.io), text_(std::move(text)), at_once_(at_once), take_(std::move(take)) {
    next();
  }
  std::size_t given() const { return given_; }

 private:
  void next() {
    timer_.expires_after(milliseconds(5));
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
      if (error || alive.expired() || given_ == text_.size()) return;
      const std::string piece = text_.substr(given_, at_once_);
      given_ += piece.size();
      take_(piece);
      next();
    });
  }

  boost::asio::steady_timer timer_;
  std::string text_;
  std::size_t at_once_;
  std::function<void(const std::string&)> take_;
  std::size_t given_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Peers are never silent long enough for the idle timeout.
const Timeouts kImpatient{.handshake = milliseconds(300),
                          .ping = milliseconds(40),
                          .idle = milliseconds(20'000),
                          .slow_grace = milliseconds(100)};

// Returns the server's goodbye to an authorised peer that sends `at_once` bytes of this text every five
// milliseconds.
std::optional<Goodbye> answer_to_drip(Loopback& net, const std::string& text, std::size_t at_once) {
  RawPeer peer(net);
  Drip drip(net, text, at_once, [&](const std::string& piece) { peer.write(piece); });
  net.run_until([&] {
    peer.poll();
    return peer.ended() || drip.given() == text.size();
  });
  CHECK(peer.ended() == (drip.given() < text.size()));
  return peer.goodbye();
}

tcp::socket small_window(Loopback& net) {
  tcp::socket socket(net.io);
  socket.open(tcp::v4());
  socket.set_option(boost::asio::socket_base::receive_buffer_size(4096));  // must be set before connecting
  const auto address = net.listener->local_address();
  socket.connect({boost::asio::ip::make_address(address.host), address.port});
  return socket;
}

struct WatchedSource final : ChunkSource {
  explicit WatchedSource(std::shared_ptr<StoredObject> truth) : object(std::move(truth)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    ++reads;
    bytes += out.size();
    return failure ? Result<void>(*failure) : object->read_part(chunk, from, out);
  }
  void sent(std::size_t, std::size_t frame_size) override { frames.push_back(frame_size); }
  std::shared_ptr<StoredObject> object;
  std::optional<Error> failure;
  int reads = 0;
  std::size_t bytes = 0;  // of all reads
  std::vector<std::uint64_t> frames;
};

// A peer that requests a chunk of 4 MiB, more than the kernel buffers, and reads nothing.
struct Waiting {
  Waiting() {
    peer.meet(net);
    net.server.link->serve(payload.manifest, source);
    peer.stop_reading();
    peer.write(encode_frame(ChunkRequest{payload.manifest.id(), 0, 1}));
  }
  struct Listening : Loopback {
    Listening() { listen(); }
  };
  Listening net;
  Payload payload{kMaxChunkSize / sizeof(float), kMaxChunkSize};
  std::unique_ptr<ChunkStore> store = make_memory_chunk_store(16 << 20);
  std::shared_ptr<WatchedSource> source = std::make_shared<WatchedSource>(payload.store_in(*store));
  RawPeer peer{net, net.client_key, small_window(net)};
};

}  // namespace

TEST_CASE("A6 row 53: a stranger who sends its TLS hello byte by byte is dropped in time") {
  Loopback net;
  std::vector<Error> refused;
  net.listen({.timeouts = kImpatient,
              .on_refused = [&](const Address&, const Error& why) { refused.push_back(why); }});
  auto socket = RawPeer::connected(net);
  // The start of a ClientHello of 512 bytes, followed by zeros.
  const std::string hello =
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, '\0');
  boost::system::error_code broken;
  Drip drip(net, hello, 1, [&](const std::string& piece) {
    boost::asio::write(socket, boost::asio::buffer(piece), broken);
  });
  REQUIRE(net.run_until([&] { return !refused.empty(); }));
  CHECK(refused.front().message.find("in time") != std::string::npos);
  CHECK(drip.given() < hello.size());
  CHECK(net.links == 0);
}

TEST_CASE("A6 row 53: a peer that sends its hello byte by byte is dropped in time") {
  Loopback net;
  net.authorise_at_once = false;
  net.listen({.timeouts = {.handshake = milliseconds(300)}});
  const auto goodbye = answer_to_drip(
      net, encode_frame(Hello{.features = {}, .software = std::string(900, 'x'), .token = {}}), 1);
  REQUIRE(goodbye);
  CHECK(goodbye->reason.find("in time") != std::string::npos);
  CHECK(net.server.messages.empty());
}

TEST_CASE(
    "A6 row 53: an authorised peer that sends a header at 200 bytes a second is dropped, at 25,600 it is "
    "not") {
  Loopback net;
  net.listen({.timeouts = kImpatient});
  const std::string message = encode_frame(RunDescription{RunId(1), "run", 1, std::string(10'000, 'x'), {}});
  const auto goodbye = answer_to_drip(net, message, 1);
  REQUIRE(goodbye);
  CHECK(goodbye->code == ErrorCode::kResource);
  CHECK(goodbye->reason.find("fewer than 4096 bytes per second") != std::string::npos);
  CHECK(net.server.messages.empty());
  CHECK_FALSE(answer_to_drip(net, message, 128));
  CHECK(net.run_until([&] { return net.server.messages.size() == 1; }));
}

TEST_CASE(
    "A6 row 53: a peer that sends a chunk's payload at 200 bytes a second is dropped, and the fetch fails") {
  Loopback net;
  net.listen({.timeouts = kImpatient});
  const Payload payload(500'000);
  RawPeer peer(net);
  peer.meet(net);
  auto store = make_memory_chunk_store(16 << 20);
  std::optional<Error> outcome;
  net.server.link->fetch(payload.manifest, *store->create(payload.manifest),
                         [&](Result<void> result) { outcome = result.error(); });
  peer.write(encode_frame(Chunk{payload.manifest.id(), 0}, kDefaultChunkSize));
  const Drip drip(net, std::string(kDefaultChunkSize, 'x'), 1,
                  [&](const std::string& piece) { peer.write(piece); });
  REQUIRE(net.run_until([&] {
    peer.poll();
    return peer.ended() && outcome;
  }));
  REQUIRE(peer.goodbye());
  CHECK(peer.goodbye()->reason.find("fewer than 4096 bytes per second") != std::string::npos);
  CHECK(outcome->code == ErrorCode::kUnavailable);
}

TEST_CASE("A6 row 53: a peer that speaks but takes no bytes is dropped") {
  Loopback net;
  const Timeouts quick{.ping = milliseconds(40), .idle = milliseconds(200)};
  net.listen({.timeouts = quick});
  RawPeer peer(net, net.client_key, small_window(net));
  peer.stop_reading();
  peer.meet(net);
  // Less than the queue's limit, but more than the kernel buffers.
  for (int i = 0; i < 60; ++i)
    net.server.link->send(RunDescription{RunId(1), "run", 1, std::string(kMaxTaskText, 'x'), {}});
  REQUIRE(net.run_until([&] {
    if (peer.written()) peer.write(encode_empty_frame(MessageType::kPong));
    peer.poll();
    return net.server.closed.has_value();
  }));
  CHECK(net.server.closed->message.find("has not read any bytes") != std::string::npos);
}

TEST_CASE(
    "A6: a chunk holds no memory while its peer makes it wait, then it is read again and arrives whole") {
  Waiting waits;
  REQUIRE(waits.net.run_until([&] {
    waits.peer.poll();
    return waits.source->reads > 0;
  }));
  CHECK(waits.source->frames.empty());
  waits.peer.go_on_reading();
  REQUIRE(waits.net.run_until([&] {
    waits.peer.poll();
    return !waits.source->frames.empty() && waits.peer.received().size() >= waits.payload.bytes().size();
  }));
  CHECK(waits.source->bytes > waits.payload.bytes().size());  // part of it was read twice
  CHECK(waits.source->frames == std::vector{chunk_frame_size(0, waits.payload.bytes().size()).value()});
  const auto& received = waits.peer.received();
  const auto& bytes = waits.payload.bytes();
  CHECK(std::memcmp(received.data() + received.size() - bytes.size(), bytes.data(), bytes.size()) == 0);
  CHECK_FALSE(waits.net.server.closed);
}

TEST_CASE("R3: a chunk that is half sent and cannot be read again ends the link, which says why") {
  Waiting waits;
  REQUIRE(waits.net.run_until([&] {
    waits.peer.poll();
    return waits.source->reads > 0;
  }));
  waits.source->failure = Error{ErrorCode::kUnavailable, "the disk said no"};
  waits.peer.go_on_reading();
  REQUIRE(waits.net.run_until([&] {
    waits.peer.poll();
    return waits.net.server.closed.has_value();
  }));
  CHECK(waits.net.server.closed->message == "the disk said no");
  CHECK(waits.source->frames.empty());
}
