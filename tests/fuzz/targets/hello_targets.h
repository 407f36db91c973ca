// Fuzz target of the gatekeeper: the first bytes of a connection pass the frame reader's limits for strangers
// and the decoder to the gatekeeper, without a socket. The enrolment book has one client with its token and
// one revoked client. It never changes, so that inputs are independent.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/crypto/sha256.h"
#include "core/text.h"
#include "protocol/codec.h"
#include "protocol/session/frame_reader.h"
#include "server/coordinator/gatekeeper.h"
#include "server/enrolment.h"
#include "server/store/enrolment_file.h"

namespace fedge::fuzz {

inline const std::string kKnownSecret = "known-secret-0123456789";

// A link that only records.
class ScriptedLink final : public protocol::Link {
 public:
  explicit ScriptedLink(PublicKey key) : key_(key) {}

  const PublicKey& peer() const override { return key_; }
  const PublicKey& own_key() const override { return key_; }
  std::string peer_address() const override { return "192.0.2.1:7"; }
  void set_callbacks(protocol::LinkCallbacks set) override { callbacks = std::move(set); }
  void authorise() override { authorised = true; }
  void send(const protocol::Message& message) override {
    FEDGE_CHECK(!closed, "something is sent after the end");
    sent.push_back(message);
  }
  void serve(const protocol::Manifest&, std::shared_ptr<protocol::ChunkSource>) override { touched = true; }
  void stop_serving(const protocol::ObjectId&) override { touched = true; }
  void fetch(const protocol::Manifest&, std::shared_ptr<protocol::ChunkSink>,
             std::function<void(Result<void>)>) override {
    touched = true;
  }
  void cancel_fetch(const protocol::ObjectId&) override { touched = true; }
  Result<void> exchange(const protocol::Manifest&, std::shared_ptr<protocol::ChunkSource>,
                        std::shared_ptr<protocol::ChunkSink>, protocol::ExchangeCallbacks) override {
    touched = true;
    return {};
  }
  void end_exchange(const protocol::ObjectId&) override { touched = true; }
  bool ask(const protocol::Chunk&) override { return touched = true; }
  bool send_chunk(const protocol::Chunk&) override { return touched = true; }
  bool refuse_chunk(const protocol::Chunk&, const Error&) override { return touched = true; }
  std::size_t queued() const override { return 0; }
  protocol::Traffic traffic() const override { return {}; }
  void close(const std::string&) override { closed = true; }

  protocol::LinkCallbacks callbacks;
  std::vector<protocol::Message> sent;
  bool authorised = false;
  bool closed = false;
  bool touched = false;  // used beyond a greeting

 private:
  PublicKey key_;
};

inline PublicKey numbered_key(std::uint8_t number) {
  PublicKey key{};
  key.bytes.fill(number);
  return key;
}

// The folder of an enrolment book: client 0 has key 1 and has redeemed kKnownSecret; client 1 with key 2 is
// revoked.
class KnownBook {
 public:
  KnownBook() {
    std::string folder = (std::filesystem::temp_directory_path() / "fedge-hello-XXXXXX").string();
    FEDGE_CHECK(::mkdtemp(folder.data()) != nullptr, "no temporary folder");
    folder_ = folder;
    server::EnrolmentBook known;
    known.tokens = {
        {.id = 1, .client = ClientId(0), .secret_hash = to_hex(sha256(kKnownSecret)), .uses = 1, .used = 1}};
    known.clients = {
        {.client = ClientId(0), .key = numbered_key(1), .token = 1},
        {.client = ClientId(1), .key = numbered_key(2), .token = 1, .state = server::ClientState::kRevoked}};
    const auto written = server::create_enrolment_book(folder_, known);
    FEDGE_CHECK(written.has_value(), written ? "" : written.error().message);
    text_ = text();
  }
  ~KnownBook() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  KnownBook(const KnownBook&) = delete;
  KnownBook& operator=(const KnownBook&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  bool is_unchanged() const { return text() == text_; }

 private:
  std::string text() const {
    const auto book = server::Enrolment(folder_).read().value();
    std::string all;
    for (const server::TokenRecord& token : book.tokens)
      all +=
          std::to_string(token.id) + " " + std::to_string(token.used) + (token.revoked ? " revoked\n" : "\n");
    for (const server::ClientRecord& client : book.clients)
      all +=
          std::to_string(client.client.value()) + " " + to_hex(client.key) + to_string(client.state) + "\n";
    return all;
  }
  std::filesystem::path folder_;
  std::string text_;
};

// Decides from the message alone whether a peer with this key may be admitted.
inline bool may_enter(const protocol::Message& first, std::uint8_t key, bool joining) {
  const auto* hello = std::get_if<protocol::Hello>(&first);
  if (hello == nullptr || key != 1 || hello->token.empty() == joining) return false;
  if (hello->min_version > protocol::kProtocolVersion || hello->max_version < protocol::kProtocolVersion)
    return false;
  return !joining || hello->token == kKnownSecret;
}

inline void check_greeting(const ScriptedLink& link, const protocol::Message& first, std::uint8_t key,
                           bool admitted) {
  FEDGE_CHECK(!link.touched, "a stranger is served");
  FEDGE_CHECK(admitted == may_enter(first, key, false), "the wrong one is let in, or the right one is not");
  const bool joined = may_enter(first, key, true);
  FEDGE_CHECK(link.authorised == (admitted || joined) && link.closed == !admitted, "let in and sent away");
  FEDGE_CHECK(link.sent.size() == 1, "a greeting has one answer");
  const bool welcome = std::holds_alternative<protocol::Welcome>(link.sent.front());
  FEDGE_CHECK(welcome == (admitted || joined), "the wrong answer");
  const auto* goodbye = std::get_if<protocol::Goodbye>(&link.sent.front());
  FEDGE_CHECK(welcome || (goodbye != nullptr && check_text(goodbye->reason, protocol::kMaxText, "reason")),
              "a refusal gives a reason that can be shown");
}

// Returns the first message in these bytes; nothing if the link would be closed or would wait for more.
inline std::optional<protocol::Message> first_message(std::span<const std::byte> bytes, std::size_t at_once) {
  protocol::FrameReader reader;
  while (!bytes.empty()) {
    const auto space = reader.space();
    FEDGE_CHECK(space.size() <= protocol::kMaxHeaderUnauthorised, "too much room for a stranger");
    const std::size_t size = std::min({space.size(), bytes.size(), at_once});
    std::memcpy(space.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    const auto event = reader.filled(size, protocol::kUnauthorisedLimits);
    if (!event) return std::nullopt;
    FEDGE_CHECK(*event != protocol::FrameReader::Event::kPayload, "a stranger sends a payload");
    if (*event != protocol::FrameReader::Event::kFrame) continue;
    const auto message = protocol::decode(reader.frame().type, reader.header());
    return message ? std::optional(*message) : std::nullopt;
  }
  return std::nullopt;
}

// Byte 0: the peer's key (1 is known, 2 is revoked, others are unknown). Byte 1: the number of bytes that
// arrive at once, minus one.
inline void feed_hello(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  static const KnownBook book;
  const auto key = static_cast<std::uint8_t>(static_cast<unsigned>(bytes[0]) % 4);
  const auto link = std::make_shared<ScriptedLink>(numbered_key(key));
  bool admitted = false;
  {
    boost::asio::io_context io;
    server::Gatekeeper gate(io, book.folder(),
                            {.software = "coordinator", .rates = {}, .now = [] { return Time(); }});
    gate.on_admitted([&](ClientId client, const std::shared_ptr<protocol::Link>&, const protocol::Hello&) {
      FEDGE_CHECK(client == ClientId(0), "somebody else's number");
      admitted = true;
    });
    gate.on_event([](const Event& event) { FEDGE_CHECK(!to_string(event).empty(), "an event has a text"); });
    gate.receive(link);
    const auto first = first_message(bytes.subspan(2), static_cast<std::size_t>(bytes[1]) + 1);
    if (first) {
      const auto on_message = link->callbacks.on_message;
      on_message(*first);
      io.run();  // another thread looks the token up
      check_greeting(*link, *first, key, admitted);
      const std::size_t answers = link->sent.size();
      if (!admitted) on_message(*first);  // in transit when the link was closed
      FEDGE_CHECK(link->sent.size() == answers, "a link that was closed is answered");
    }
    link->callbacks.on_closed({ErrorCode::kUnavailable, "the end"});
    gate.close("the end");
  }
  link->callbacks = {};
  FEDGE_CHECK(link.use_count() == 1, "a link that is gone is kept");
  FEDGE_CHECK(book.is_unchanged(), "a greeting changes the book");
}

}  // namespace fedge::fuzz
