#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include <boost/asio/write.hpp>

#include "protocol/chunks/chunk_messages.h"
#include "tests/unit/protocol/raw_peer.h"

using namespace fedge;
using namespace fedge::protocol;
using boost::asio::ip::tcp;

namespace {

// Sends these bytes and returns the server's goodbye after it has closed the connection.
Goodbye answer_to(Loopback& net, const std::string& bytes) {
  RawPeer peer(net);
  peer.write(bytes);
  REQUIRE(net.run_until([&] {
    peer.poll();
    return peer.ended();
  }));
  const auto goodbye = peer.goodbye();
  REQUIRE(goodbye);
  return *goodbye;
}

std::string fixed(MessageType type, std::uint32_t header, std::uint32_t payload) {
  const auto bytes = encode_frame_header({type, header, payload});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool cut_off(Loopback& net, tcp::socket& socket) {
  socket.non_blocking(true);
  return net.run_until([&] {
    char buffer[4096];
    boost::system::error_code error;
    socket.read_some(boost::asio::buffer(buffer), error);
    return error && error != boost::asio::error::would_block;
  });
}

// A TLS client with all restrictions lifted, to test what the server enforces.
struct OtherTls {
  explicit OtherTls(Loopback& net)
      : socket(RawPeer::connected(net)), context(SSL_CTX_new(TLS_client_method())) {
    socket.native_non_blocking(true);
  }
  ~OtherTls() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  // Uses a certificate for this key, signed by it; takes ownership of the key.
  void use_key(EVP_PKEY* key, const EVP_MD* digest) {
    X509* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, digest);
    REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  // Returns whether no byte of the server could be read. In TLS 1.3 a completed handshake alone does not
  // prove admission.
  bool refused(Loopback& net) {
    ssl = SSL_new(context);
    SSL_set_fd(ssl, socket.native_handle());
    SSL_set_connect_state(ssl);
    bool failed = false;
    net.run_until([&] {
      char byte = 0;
      const int result = SSL_read(ssl, &byte, 1);
      const int error = SSL_get_error(ssl, result);
      failed = result <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
      return failed || result > 0;
    });
    return failed;
  }
  tcp::socket socket;
  SSL_CTX* context;
  SSL* ssl = nullptr;
};

}  // namespace

TEST_CASE(
    "A1 row 32: a server with another key than the pinned one is refused, with both keys in the error") {
  Loopback net;
  net.listen();
  const SecretKey other = test_key(9);
  connect(net.io, net.client_identity, net.listener->local_address(), other.public_key(),
          [&](Result<std::shared_ptr<Link>> link) { net.refused = link.error(); });
  REQUIRE(net.run_until([&] { return net.refused.has_value(); }));
  CHECK(net.refused->code == ErrorCode::kRefused);
  CHECK(net.refused->message.find(to_hex(other.public_key())) != std::string::npos);
  CHECK(net.refused->message.find(to_hex(net.server_key.public_key())) != std::string::npos);
  CHECK_FALSE((net.server.link && !net.server.closed));
}

TEST_CASE(
    "A6 row 34: plaintext HTTP, an SSH banner and garbage on the port are cut off at once, each with a "
    "reason") {
  Loopback net;
  std::vector<std::string> reasons;
  net.listen({.on_refused = [&](const Address& peer, const Error& why) {
    CHECK(peer.host == "127.0.0.1");
    reasons.push_back(why.message);
  }});
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
        std::string(3000, '\xff'), std::string(64, '\0')}) {
    auto socket = RawPeer::connected(net);
    boost::asio::write(socket, boost::asio::buffer(text));
    CHECK(cut_off(net, socket));
  }
  CHECK(net.links == 0);
  REQUIRE(reasons.size() == 4);
  CHECK(reasons[0] == "TLS failed: http request");
  for (const std::string& reason : reasons) CHECK(reason.starts_with("TLS failed: "));
}

TEST_CASE("A6 row 53: a stranger who says nothing, or only half a handshake, is cut off in time") {
  Loopback net;
  net.listen({.timeouts = {.handshake = std::chrono::milliseconds(60)}});
  auto silent = RawPeer::connected(net);
  CHECK(cut_off(net, silent));
  auto half = RawPeer::connected(net);
  boost::asio::write(half, boost::asio::buffer(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)));
  CHECK(cut_off(net, half));
  CHECK(net.links == 0);
}

TEST_CASE("A1 row 32: TLS 1.2, no certificate, and a key that is not Ed25519 are refused") {
  Loopback net;
  net.listen();
  SUBCASE("TLS 1.2") {
    OtherTls old(net);
    SSL_CTX_set_max_proto_version(old.context, TLS1_2_VERSION);
    CHECK(old.refused(net));
  }
  SUBCASE("no certificate") {
    OtherTls anonymous(net);
    CHECK(anonymous.refused(net));
  }
  SUBCASE("an elliptic curve key") {
    OtherTls other(net);
    other.use_key(EVP_EC_gen("P-256"), EVP_sha256());
    CHECK(other.refused(net));
  }
  CHECK(net.links == 0);
}

TEST_CASE("A1 row 31: no session ticket, no resumption and no early data, whatever the client asks for") {
  Loopback net;
  net.listen();
  OtherTls other(net);
  other.use_key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), nullptr);
  static int tickets = 0;
  SSL_CTX_set_session_cache_mode(other.context, SSL_SESS_CACHE_CLIENT);
  SSL_CTX_sess_set_new_cb(other.context, [](SSL*, SSL_SESSION*) { return ++tickets, 0; });
  // Session tickets, if any, would arrive before these first bytes.
  net.on_server_link = [&] { net.server.link->send(Goodbye{ErrorCode::kUnsupported, "no"}); };
  CHECK_FALSE(other.refused(net));
  CHECK(net.links == 1);
  CHECK(tickets == 0);
  SSL_SESSION* session = SSL_get1_session(other.ssl);
  CHECK_FALSE(SSL_SESSION_is_resumable(session));
  CHECK(SSL_SESSION_get_max_early_data(session) == 0);
  SSL_SESSION_free(session);

  // The client offers a session that it made up, as if from another server; the server ignores it.
  OtherTls again(net);
  again.use_key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), nullptr);
  static int offered = 0;
  SSL_CTX_set_psk_use_session_callback(again.context, [](SSL* ssl, const EVP_MD*, const unsigned char** id,
                                                         std::size_t* size, SSL_SESSION** made) {
    static const unsigned char name[] = "stolen";
    const unsigned char secret[32] = {1};
    *made = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*made, secret, sizeof secret);
    SSL_SESSION_set_cipher(*made, SSL_CIPHER_find(ssl, reinterpret_cast<const unsigned char*>("\x13\x01")));
    SSL_SESSION_set_protocol_version(*made, TLS1_3_VERSION);
    *id = name;
    *size = sizeof name - 1;
    return ++offered, 1;
  });
  CHECK_FALSE(again.refused(net));
  CHECK(offered > 0);
  CHECK_FALSE(SSL_session_reused(again.ssl));
  CHECK(net.links == 2);
}

TEST_CASE("A1 A6 row 20: before authorisation, large frames and everything but greetings are refused") {
  Loopback net;
  net.authorise_at_once = false;
  net.listen();
  CHECK(answer_to(net, fixed(kTypeOf<Hello>, kMaxHeaderUnauthorised + 1, 0)).code == ErrorCode::kResource);
  CHECK(answer_to(net, fixed(kTypeOf<Hello>, 0x7fffffff, 0)).code == ErrorCode::kResource);
  CHECK(answer_to(net, fixed(MessageType::kChunk, 40, 100)).code == ErrorCode::kRefused);
  CHECK(answer_to(net, encode_frame(ChunkRequest{sha256("x"), 0, 1})).code == ErrorCode::kRefused);
  CHECK(answer_to(net, encode_empty_frame(MessageType::kPing)).code == ErrorCode::kRefused);
  CHECK(answer_to(net, encode_frame(RunEnded{RunId(1), "x"})).code == ErrorCode::kRefused);
  CHECK(net.server.messages.empty());
}

TEST_CASE("A6 row 53: one who is not authorised in time is told so and closed") {
  Loopback net;
  net.authorise_at_once = false;
  net.listen({.timeouts = {.handshake = std::chrono::milliseconds(200)}});
  const Goodbye goodbye = answer_to(net, encode_frame(Hello{}));
  CHECK(goodbye.code == ErrorCode::kUnavailable);
  CHECK(goodbye.reason.find("in time") != std::string::npos);
}

TEST_CASE("A1 row 21: an authorised peer that breaks the protocol is told how, and closed") {
  Loopback net;
  net.listen();
  const auto reason = [&](const std::string& bytes) { return answer_to(net, bytes).reason; };
  CHECK(reason("GET / HTTP/1.1\r\n").find("FDG1") != std::string::npos);
  CHECK(reason(fixed(static_cast<MessageType>(999), 0, 0)).find("type 999") != std::string::npos);
  CHECK(reason(fixed(MessageType::kChunk, 40, 0xffffffff)).find("payload of 4294967295") !=
        std::string::npos);
  CHECK(reason(fixed(kTypeOf<UpdateOffer>, kMaxHeader + 1, 0)).find("header of") != std::string::npos);
  CHECK(reason(fixed(kTypeOf<Hello>, 3, 0) + "\xff\xff\xff").find("hello") != std::string::npos);
  CHECK(reason(encode_frame(Chunk{sha256("x"), 4}, 100) + std::string(100, 'x')).find("was not requested") !=
        std::string::npos);
  CHECK(reason(encode_frame(ChunkRefused{sha256("x"), 0, 1, {}})).find("not being fetched") !=
        std::string::npos);
  CHECK(net.server.messages.empty());
  CHECK(net.run_until([&] { return net.server.closed_count == net.links; }));
}

TEST_CASE("A6 row 54: chunks out of range, and more than the credit, close the link") {
  Loopback net;
  net.listen();
  const Payload payload(10'000'000);
  auto store = make_memory_chunk_store(64 << 20);
  const auto object = payload.store_in(*store);
  const ObjectId id = payload.manifest.id();
  const auto count = static_cast<std::uint32_t>(payload.manifest.chunk_count());
  const auto code = [&](const ChunkRequest& request) {
    RawPeer peer(net);
    net.server.link.reset();
    peer.meet(net);
    net.server.link->serve(payload.manifest, object);
    peer.write(encode_frame(request));
    REQUIRE(net.run_until([&] {
      peer.poll();
      return peer.ended();
    }));
    return peer.goodbye()->code;
  };
  CHECK(code({id, count, 1}) == ErrorCode::kInvalid);
  CHECK(code({id, count - 1, 2}) == ErrorCode::kInvalid);
  CHECK(code({id, 0, 9}) == ErrorCode::kResource);
}

TEST_CASE("A6 row 20: a chunk of the wrong length is refused before its bytes") {
  Loopback net;
  net.listen();
  const Payload payload(500'000);
  RawPeer peer(net);
  peer.meet(net);
  auto store = make_memory_chunk_store(16 << 20);
  std::optional<Error> outcome;
  net.server.link->fetch(payload.manifest, *store->create(payload.manifest),
                         [&](Result<void> result) { outcome = result.error(); });
  REQUIRE(net.run_until([&] {
    peer.poll();
    return !peer.received().empty();
  }));
  peer.write(encode_frame(Chunk{payload.manifest.id(), 0}, kDefaultChunkSize - 4));
  REQUIRE(net.run_until([&] {
    peer.poll();
    return peer.ended();
  }));
  CHECK(peer.goodbye()->reason.find("instead of 262144") != std::string::npos);
  REQUIRE(net.run_until([&] { return outcome.has_value(); }));
  CHECK(outcome->code == ErrorCode::kUnavailable);
}

TEST_CASE("A6 row 53: a peer that never reads is cut off at the bound for queued messages") {
  Loopback net;
  net.listen();
  RawPeer peer(net);
  peer.stop_reading();
  peer.meet(net);
  const RunDescription large{RunId(1), "run", 1, std::string(kMaxTaskText, 'x'), {}};
  std::size_t sent = 0;
  REQUIRE(net.run_until([&] {
    net.server.link->send(large);
    ++sent;
    return net.server.closed.has_value();
  }));
  CHECK(net.server.closed->code == ErrorCode::kResource);
  CHECK(sent * kMaxTaskText > kMaxQueuedControl);
}

TEST_CASE("A1 row 33: a forged record ends the connection, it never reaches a handler") {
  Loopback net;
  net.listen();
  RawPeer peer(net);
  peer.meet(net);
  // A record of application data, not encrypted with the session's key.
  const std::string forged = std::string("\x17\x03\x03\x00\x40", 5) + std::string(64, 'x');
  boost::asio::write(peer.stream().socket(), boost::asio::buffer(forged));
  REQUIRE(net.run_until([&] { return net.server.closed.has_value(); }));
  CHECK(net.server.closed->code == ErrorCode::kUnavailable);
  CHECK(net.server.messages.empty());
}

TEST_CASE("A6 row 54: a flood of empty control frames is cut off") {
  Loopback net;
  net.listen();
  std::string flood;
  for (std::size_t i = 0; i < kMaxControlFramesPerTick + 2; ++i)
    flood += encode_empty_frame(MessageType::kPong);
  CHECK(answer_to(net, flood).code == ErrorCode::kResource);
}

TEST_CASE(
    "A6 row 55: an address has its share of connections before hello, and the oldest gives way above the "
    "total") {
  Loopback net;
  SUBCASE("per address") {
    net.listen({.max_unauthorised_per_address = 2, .timeouts = {.refused = std::chrono::milliseconds(10)}});
    auto first = RawPeer::connected(net);
    auto second = RawPeer::connected(net);
    auto third = RawPeer::connected(net);
    CHECK(cut_off(net, third));
    first.close();  // its place is freed a little later
    CHECK(net.run_until([&] {
      RawPeer peer(net);
      for (int i = 0; i < 100 && !peer.ready() && !peer.ended(); ++i) {
        peer.poll();
        net.io.poll();
      }
      return net.links > 0;
    }));
  }
  SUBCASE("in all") {
    net.listen({.max_unauthorised = 1});
    auto first = RawPeer::connected(net);
    RawPeer second(net);
    CHECK(cut_off(net, first));
    CHECK(net.run_until([&] {
      second.poll();
      return net.links == 1;
    }));
  }
}
