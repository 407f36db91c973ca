// Permissions of peers at a coordinator: every message type from every kind of peer, from one table.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <map>

#include "core/platform/files.h"
#include "protocol/chunks/chunk_messages.h"
#include "server/contact/key_rotation.h"
#include "tests/integration/hostile_peer.h"
#include "tests/unit/protocol/example_messages.h"
#include "tests/unit/protocol/raw_peer.h"

using namespace fedge;
using protocol::kTypeOf;
using protocol::MessageType;
using test::Federation;
using test::HostilePeer;

namespace {

enum class Identity { kUnknown, kPending, kRevoked, kEnrolled };
constexpr Identity kIdentities[] = {Identity::kUnknown, Identity::kPending, Identity::kRevoked,
                                    Identity::kEnrolled};

struct Row {
  MessageType type;
  std::string frame;
  // The outcome after an accepted Hello: open, or closed with this text in the reason.
  std::string after_hello;
};

const std::string kOpen = "open";

std::string frame_of(MessageType type) {
  const protocol::ObjectId object = sha256("some object");
  if (type == MessageType::kPing || type == MessageType::kPong) return protocol::encode_empty_frame(type);
  if (type == MessageType::kChunkRequest) return encode_frame(protocol::ChunkRequest{object, 0, 1});
  if (type == MessageType::kChunk) return encode_frame(protocol::Chunk{object, 0}, 4) + "1234";
  if (type == MessageType::kChunkRefused)
    return encode_frame(protocol::ChunkRefused{object, 0, 1, {ErrorCode::kNotFound, "no"}});
  for (const protocol::Message& message : protocol::example_messages()) {
    const std::string frame = protocol::encode_frame(message);
    const auto header =
        protocol::parse_frame_header(std::as_bytes(std::span(frame)).first<protocol::kFrameHeaderSize>(), {});
    if (header->type == type) return frame;
  }
  FAIL("no example of message type " << static_cast<int>(type));
  return {};
}

std::vector<Row> table() {
  const auto unexpected = [](const char* name) {
    return std::string("sent ") + name + ", which clients must not send";
  };
  std::vector<Row> rows = {
      {kTypeOf<protocol::Hello>, "", unexpected("hello")},
      {kTypeOf<protocol::Welcome>, "", unexpected("welcome")},
      {kTypeOf<protocol::Goodbye>, "", kOpen},  // the sender closes the connection
      {MessageType::kPing, "", kOpen},
      {MessageType::kPong, "", kOpen},
      {MessageType::kChunkRequest, "", kOpen},  // answered with chunk_refused
      {MessageType::kChunk, "", "was not requested"},
      {MessageType::kChunkRefused, "", "is not being fetched"},
      {kTypeOf<protocol::Contact>, "", unexpected("contact")},
      {kTypeOf<protocol::ContactKept>, "", kOpen},  // of a key that is not announced: ignored
      {kTypeOf<protocol::RunDescription>, "", unexpected("run_description")},
      {kTypeOf<protocol::TrainRequest>, "", unexpected("train_request")},
      {kTypeOf<protocol::UpdateOffer>, "", kOpen},  // of another run: refused or ignored
      {kTypeOf<protocol::TaskFailed>, "", kOpen},
      {kTypeOf<protocol::UpdateVerdict>, "", unexpected("update_verdict")},
      {kTypeOf<protocol::CancelTask>, "", unexpected("cancel_task")},
      {kTypeOf<protocol::RunEnded>, "", unexpected("run_ended")},
      {kTypeOf<protocol::RunAnswer>, "", kOpen},
      {kTypeOf<protocol::PublishRecord>, "", kOpen},
      {kTypeOf<protocol::SwarmMembers>, "", unexpected("swarm_members")},
      {kTypeOf<protocol::ServerlessUpdate>, "", unexpected("serverless_update")},
      {kTypeOf<protocol::UpdateHeld>, "", kOpen},  // of an unknown round: ignored
      {kTypeOf<protocol::AggregateUpdates>, "", unexpected("aggregate_updates")},
      {kTypeOf<protocol::AggregateMade>, "", kOpen},
      {kTypeOf<protocol::ChunksHeld>, "", kOpen},  // of an object that is not exchanged: ignored
      {kTypeOf<protocol::ChunksAdded>, "", kOpen},
      {kTypeOf<protocol::SwarmState>, "", kOpen},
      {kTypeOf<protocol::ChunkCancelled>, "", kOpen},
      {kTypeOf<protocol::WarmupPlan>, "", unexpected("warmup_plan")},
      {kTypeOf<protocol::WarmupSlot>, "", unexpected("warmup_slot")},
      {kTypeOf<protocol::WarmupOver>, "", unexpected("warmup_over")},
      {kTypeOf<protocol::SealedChunk>, "", kOpen},
      {kTypeOf<protocol::SecureKeys>, "", kOpen},
      {kTypeOf<protocol::SecureRoster>, "", unexpected("secure_roster")},
      {kTypeOf<protocol::SecureShares>, "", kOpen},
      {kTypeOf<protocol::SecurePeerShares>, "", unexpected("secure_peer_shares")},
      {kTypeOf<protocol::SecureSurvivors>, "", unexpected("secure_survivors")},
      {kTypeOf<protocol::SecureConsent>, "", kOpen},
      {kTypeOf<protocol::SecureConsents>, "", unexpected("secure_consents")},
      {kTypeOf<protocol::SecureUnmask>, "", kOpen},
      {kTypeOf<protocol::SplitValues>, "", kOpen},  // of another run: ignored
      {kTypeOf<protocol::SplitTaken>, "", kOpen},
      {kTypeOf<protocol::SplitEnded>, "", kOpen},
      {kTypeOf<protocol::SplitKept>, "", unexpected("split_kept")},
      {kTypeOf<protocol::SplitRefused>, "", unexpected("split_refused")},
      {kTypeOf<protocol::TokenizerRequest>, "", kOpen},  // of another run: ignored
      {kTypeOf<protocol::TokenizerPart>, "", unexpected("tokenizer_part")},
  };
  for (Row& row : rows) row.frame = frame_of(row.type);
  return rows;
}

protocol::RawPeer dial(Federation& f, const std::shared_ptr<protocol::TlsIdentity>& identity) {
  boost::asio::ip::tcp::socket socket(f.io);
  const auto address = f.coordinator->address();
  socket.connect({boost::asio::ip::make_address(address.host), address.port});
  return protocol::RawPeer(protocol::TlsStream::connecting(std::move(socket), identity, f.coordinator_key));
}

// Runs both sides until `happened`.
void drive(Federation& f, protocol::RawPeer& peer, const std::function<bool()>& happened) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!happened() && std::chrono::steady_clock::now() < limit) {
    f.io.run_one_for(std::chrono::milliseconds(1));
    peer.poll();
  }
  REQUIRE(happened());
}

// A federation that waits for more clients than connect: only peers cause events.
struct Door {
  // One address and one key connect repeatedly in this test.
  Federation f{3, {"run.wait_for_clients=3"}, {.per_client = 100}, {.max_unauthorised_per_address = 250}};
  std::map<Identity, std::shared_ptr<protocol::TlsIdentity>> identities;

  Door() {
    for (const Identity identity : kIdentities) {
      const SecretKey key = SecretKey::generate();
      identities[identity] = *protocol::make_tls_identity(key);
      if (identity == Identity::kUnknown) continue;
      const auto tokens = f.enrolment().create_tokens(
          {.approve = identity == Identity::kPending, .now = 0, .lifetime = std::chrono::hours(1)});
      REQUIRE(tokens);
      const auto enrolled = f.enrolment().redeem({.secret = tokens->front().secret, .key = key.public_key()});
      REQUIRE(enrolled);
      if (identity == Identity::kRevoked) REQUIRE(f.enrolment().revoke(enrolled->client));
    }
  }
  protocol::RawPeer connect(Identity identity) { return dial(f, identities.at(identity)); }
  // The visible state: the enrolled clients, and every file except the journal, which records connects and
  // disconnects a second later.
  std::map<std::string, std::string> state() const {
    std::map<std::string, std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(f.directory.path() / "coordinator"))
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with("runs.db"))
        files[entry.path().string()] = *read_file(entry.path(), 1 << 24);
    return files;
  }
};

// The reason that closes the connection of a peer that begins with this message.
std::string first_word(const Row& row, Identity identity) {
  const std::string name = protocol::name_of(row.type);
  if (row.type > kTypeOf<protocol::Goodbye>) return name + " came before the peer was authorised";
  if (row.type != kTypeOf<protocol::Hello>) return "the first message must be hello, not " + name;
  if (identity == Identity::kUnknown) return "this client is not enrolled at this coordinator";
  if (identity == Identity::kPending) return "waits for approval";
  return "this client's key has been revoked";
}

std::string hello() { return protocol::encode_frame(protocol::Hello{.software = "test"}); }

}  // namespace

TEST_CASE("A1 row 35: no message but hello does anything for whoever has not been let in") {
  Door door;
  const auto before = door.state();
  std::size_t cases = 0;
  for (const Identity identity : kIdentities)
    for (const Row& row : table()) {
      if (identity == Identity::kEnrolled && row.type == kTypeOf<protocol::Hello>) continue;
      CAPTURE(static_cast<int>(identity));
      CAPTURE(std::string(protocol::name_of(row.type)));
      auto peer = door.connect(identity);
      peer.write(row.type == kTypeOf<protocol::Hello> ? hello() : row.frame);
      drive(door.f, peer, [&] { return peer.ended(); });
      REQUIRE(peer.goodbye());
      CHECK_MESSAGE(peer.goodbye()->reason.find(first_word(row, identity)) != std::string::npos,
                    peer.goodbye()->reason);
      CHECK(peer.count(kTypeOf<protocol::Welcome>) == 0);
      CHECK(peer.count(kTypeOf<protocol::RunDescription>) == 0);
      ++cases;
    }
  CHECK(cases == 4 * 47 - 1);
  CHECK_FALSE(door.f.reported("client.connected"));
  CHECK(door.state() == before);
}

TEST_CASE("A1 row 35: what follows a refused hello on the same connection does nothing either") {
  Door door;
  const auto before = door.state();
  for (const Identity identity : {Identity::kUnknown, Identity::kPending, Identity::kRevoked}) {
    std::string everything = hello();
    for (const Row& row : table()) everything += row.frame;
    auto peer = door.connect(identity);
    peer.write(everything);
    drive(door.f, peer, [&] { return peer.ended(); });
    REQUIRE(peer.goodbye());
    CHECK(peer.count(kTypeOf<protocol::Goodbye>) == 1);
    CHECK(peer.received().size() < 400);
  }
  CHECK(door.state() == before);
}

TEST_CASE("A1 row 35: an enrolled client may say what is a client's to say, and nothing else") {
  Door door;
  const auto before = door.state();
  for (const Row& row : table()) {
    CAPTURE(std::string(protocol::name_of(row.type)));
    auto peer = door.connect(Identity::kEnrolled);
    peer.write(hello());
    drive(door.f, peer, [&] { return peer.count(kTypeOf<protocol::RunDescription>) == 1; });
    peer.write(row.frame + protocol::encode_empty_frame(MessageType::kPing));
    const std::size_t pongs = row.type == MessageType::kPing ? 2 : 1;
    drive(door.f, peer, [&] { return peer.ended() || peer.count(MessageType::kPong) == pongs; });
    CHECK(peer.ended() == (row.after_hello != kOpen));
    if (row.after_hello == kOpen) continue;
    REQUIRE(peer.goodbye());
    CHECK_MESSAGE(peer.goodbye()->reason.find(row.after_hello) != std::string::npos, peer.goodbye()->reason);
  }
  CHECK(door.state() == before);
}

TEST_CASE("contact: a connection whose handshake was under way when the key was replaced is sent away") {
  Door door;
  const auto directory = door.f.directory.path() / "coordinator";
  server::Enrolment book(directory);
  REQUIRE(server::announce_next_key(directory, book, server::Actor{}));
  door.f.run_until([&] { return door.f.reported("key.announced"); });
  const auto tokens = book.create_tokens({.now = 0, .lifetime = std::chrono::hours(1)});
  REQUIRE(tokens);
  std::vector<std::pair<protocol::RawPeer, std::string>> peers;
  peers.emplace_back(door.connect(Identity::kEnrolled), hello());
  // A device that joins would pin the former key.
  peers.emplace_back(door.connect(Identity::kUnknown),
                     protocol::encode_frame(protocol::Hello{.token = tokens->front().secret}));
  for (auto& [peer, word] : peers) drive(door.f, peer, [&] { return peer.ready(); });
  REQUIRE(server::rotate_key(directory, book, {}));
  door.f.run_until([&] { return door.f.reported("key.rotated"); });
  for (auto& [peer, word] : peers) {
    peer.write(word);
    drive(door.f, peer, [&] { return peer.ended(); });
    REQUIRE(peer.goodbye());
    CHECK(peer.goodbye()->code == ErrorCode::kUnavailable);
    CHECK(peer.goodbye()->reason.find("key was replaced") != std::string::npos);
    CHECK(peer.count(kTypeOf<protocol::Welcome>) == 0);
    CHECK(peer.count(kTypeOf<protocol::Contact>) == 0);
  }
  CHECK_FALSE(door.f.reported("client.connected"));
}

TEST_CASE("contact: only a client that understands it is told where the coordinator is") {
  Door door;
  for (const bool understands : {false, true}) {
    auto peer = door.connect(Identity::kEnrolled);
    protocol::Hello word{.software = "test"};
    if (understands) word.features = {"something", protocol::kContactFeature};
    peer.write(protocol::encode_frame(word));
    drive(door.f, peer, [&] { return peer.count(kTypeOf<protocol::RunDescription>) == 1; });
    CHECK(peer.count(kTypeOf<protocol::Contact>) == (understands ? 1 : 0));
  }
}

TEST_CASE("A2 row 37: no message of a client's has a field that says who it is") {
  const auto text = read_file(FEDGE_SOURCE_DIR "/protocol/proto/fedge.proto", 1 << 20);
  REQUIRE(text);
  for (const char* message :
       {"Hello", "RunAnswer", "UpdateOffer", "TaskFailed", "PublishRecord", "Manifest"}) {
    const std::size_t begin = text->find(std::string("message ") + message + " {");
    REQUIRE_MESSAGE(begin != std::string::npos, message);
    const std::string body = text->substr(begin, text->find("\n}", begin) - begin);
    for (const char* field : {" client = ", " client_id = ", " node = ", " key = ", " peer = "})
      CHECK_MESSAGE(body.find(field) == std::string::npos, message);
  }
}

TEST_CASE("A2 row 37: who sends another's offer, byte for byte, sends its own") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1"});
  HostilePeer one(f);
  one.join(f.token());
  HostilePeer two(f);
  two.join(f.token());
  one.wait_for_task(1);
  two.wait_for_task(1);
  const auto offer = one.offer(one.zero_update());
  two.send_update(offer, one.zero_update());
  CHECK(two.verdict->accepted);
  CHECK_FALSE(one.verdict);  // its own task is still open
  one.send_update(offer, one.zero_update());
  CHECK(one.verdict->accepted);
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 2);
}

TEST_CASE("A2 row 30: a result for a task that was given to another is refused") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1", "sampling.clients_per_round=1"});
  HostilePeer one(f);
  one.join(f.token());
  HostilePeer two(f);
  two.join(f.token());
  f.run_until([&] { return one.task || two.task; });
  HostilePeer& chosen = one.task ? one : two;
  HostilePeer& other = one.task ? two : one;
  const auto offer = chosen.offer(chosen.zero_update());
  other.send_update(offer, chosen.zero_update());
  CHECK_FALSE(other.verdict->accepted);
  chosen.send_update(offer, chosen.zero_update());
  CHECK(chosen.verdict->accepted);
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 1);
}

TEST_CASE(
    "A1 row 36: a token that another key has used is refused, and so is one that is only nearly right") {
  Federation f(1, {});
  const std::string secret = f.token();
  HostilePeer first(f);
  first.greet(secret);
  REQUIRE(*first.answer);
  HostilePeer thief(f);
  thief.greet(secret);
  CHECK(thief.answer->error().message ==
        "the coordinator refused the connection: the join token was already used; ask the operator for a new "
        "one");
  std::string nearly = secret;
  nearly.back() = nearly.back() == '0' ? '1' : '0';
  thief.greet(nearly);
  CHECK(thief.answer->error().message ==
        "the coordinator refused the connection: this coordinator does not know the join token");
}

TEST_CASE(
    "A1 row 36: after five wrong tokens even the right one is refused from this address, and that is said") {
  Federation f(1, {});
  HostilePeer guesser(f);
  for (int i = 0; i < 5; ++i) guesser.greet("0123456789abcdef0123456789abcde" + std::to_string(i));
  CHECK(f.count("client.blocked") == 1);
  CHECK(f.count("client.refused") == 1);  // one line per minute and address
  const std::string secret = f.token();
  for (int i = 0; i < 3; ++i) {
    guesser.greet(secret);
    REQUIRE_FALSE(*guesser.answer);
    CHECK(guesser.answer->error().code == ErrorCode::kResource);
    CHECK(guesser.answer->error().message ==
          "the coordinator refused the connection: too many wrong join tokens came from this address; try "
          "again in a minute");
  }
  CHECK(f.count("client.refused") == 1);  // a flood of attempts does not flood the log
  CHECK(f.enrolment().read()->clients.empty());
  // An enrolled client is still admitted from the same address.
  f.add_client();
  f.run_until([&] { return f.reported("client.connected"); });
}

TEST_CASE("A1 row 36: a used or revoked token is refused for what it is, and does not count as a wrong one") {
  Federation f(1, {});
  const std::string used = f.token();
  HostilePeer first(f);
  first.greet(used);
  REQUIRE(*first.answer);
  const auto revoked = f.enrolment().create_tokens({.now = 0, .lifetime = std::chrono::hours(1'000'000)});
  REQUIRE(revoked);
  REQUIRE(f.enrolment().revoke_token(revoked->front().id));
  HostilePeer late(f);
  for (const auto& [secret, reason] :
       {std::pair(used, "the join token was already used; ask the operator for a new one"),
        std::pair(revoked->front().secret, "the join token has been revoked")})
    for (int i = 0; i < 6; ++i) {
      late.greet(secret);
      REQUIRE_FALSE(*late.answer);
      CHECK(late.answer->error().code == ErrorCode::kRefused);
      CHECK(late.answer->error().message == std::string("the coordinator refused the connection: ") + reason);
    }
  CHECK(f.count("client.blocked") == 0);
  CHECK(f.count("client.refused") == 1);  // one line a minute and address
  CHECK(f.reported("the join token was already used"));
  // The key that used it gets its answer once more, and others join from this address.
  first.greet(used);
  CHECK(*first.answer);
  late.greet(f.token());
  CHECK(*late.answer);
}

TEST_CASE("A1 row 36: many clients that join at once with one used token do not block their address") {
  Federation f(1, {});
  const std::string secret = f.token();
  std::deque<HostilePeer> peers;
  {
    // Holds the first redemption until the other joins wait behind it.
    const FileLock audit(f.directory.path() / "coordinator" / "audit.log");
    for (int i = 0; i < 9; ++i) peers.emplace_back(f).begin_greeting(secret);
    while (f.io.run_one_for(std::chrono::milliseconds(100)) > 0) {
    }
    for (const HostilePeer& peer : peers) CHECK_FALSE(peer.answer);
  }
  f.run_until([&] { return std::ranges::all_of(peers, [](const auto& peer) { return !!peer.answer; }); });
  CHECK(std::ranges::count_if(peers, [](const auto& peer) { return peer.answer->has_value(); }) == 1);
  for (const HostilePeer& peer : peers)
    if (!*peer.answer)
      CHECK(peer.answer->error().message.ends_with("already used; ask the operator for a new one"));
  CHECK(f.count("client.blocked") == 0);
  HostilePeer guesser(f);
  for (int i = 0; i < 4; ++i) guesser.greet("0123456789abcdef0123456789abcde" + std::to_string(i));
  CHECK(f.count("client.blocked") == 0);
  guesser.greet("0123456789abcdef0123456789abcde4");
  CHECK(f.count("client.blocked") == 1);
}

TEST_CASE("A1 row 36: a pending client waits at the door, is told so, and is let in once it is approved") {
  Federation f(1, {"run.rounds=1"});
  const auto tokens = f.enrolment().create_tokens(
      {.count = 2, .approve = true, .now = 0, .lifetime = std::chrono::hours(1'000'000)});
  REQUIRE(tokens);
  HostilePeer peer(f);
  peer.greet(tokens->at(1).secret);
  REQUIRE(*peer.answer);
  CHECK((*peer.answer)->pending);
  CHECK(f.reported("client.pending client=1"));

  const auto state = f.state_of(0);
  const auto key = client::open_node_key(state);
  REQUIRE(f.enrolment().redeem({.secret = tokens->at(0).secret, .key = key->public_key()})->pending);
  REQUIRE(client::write_membership(state, {{f.coordinator->address()}, f.coordinator_key, ClientId(0)}));
  std::vector<std::string> said;
  auto daemon = client::Daemon::create(
      f.io, {.state_directory = state,
             .software = "test",
             .backoff = {.first = seconds(0.01), .longest = seconds(0.05)},
             .stop_after_run = true,
             .on_event = [&](const Event& event) { said.push_back(to_string(event)); }});
  REQUIRE(daemon);
  (*daemon)->start();
  f.run_until([&] { return f.count("client.awaiting_approval") >= 3; });
  REQUIRE_FALSE(said.empty());
  CHECK_MESSAGE(said.front().find("client 0 waits for approval; the operator of the coordinator can approve "
                                  "it with: fedge client approve 0") != std::string::npos,
                said.front());
  CHECK_FALSE(f.reported("client.connected"));
  CHECK_FALSE((*daemon)->failure());
  REQUIRE(f.enrolment().approve(ClientId(0)));
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 1);
}

TEST_CASE("A1: a revoked client is told and cut off while it works, without a word of its own") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1"});
  HostilePeer one(f);
  one.join(f.token());
  HostilePeer two(f);
  two.join(f.token());
  one.wait_for_task(1);
  two.wait_for_task(1);
  REQUIRE(f.enrolment().revoke((*two.answer)->client));
  f.run_until([&] { return two.goodbye && f.reported("client.dropped round=1 client=1"); });
  CHECK(two.goodbye->code == ErrorCode::kRefused);
  CHECK(two.goodbye->reason == "this client's key has been revoked");
  one.send_update(one.offer(one.zero_update()), one.zero_update());
  CHECK(one.verdict->accepted);
}

TEST_CASE("A1: a client that was revoked since it connected gets no more work, however soon the next comes") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1"});
  HostilePeer one(f);
  one.join(f.token());
  REQUIRE(*one.answer);
  const SecretKey key = SecretKey::generate();
  REQUIRE(f.enrolment().redeem({.secret = f.token(), .key = key.public_key()}));
  auto two = dial(f, *protocol::make_tls_identity(key));
  two.write(hello());
  drive(f, two, [&] { return two.count(kTypeOf<protocol::RunDescription>) == 1; });
  // Both are connected; the second answer starts the round.
  REQUIRE(f.enrolment().revoke((*one.answer)->client));
  two.write(protocol::encode_frame(protocol::RunAnswer{f.run.id, true, SampleCount(4), {}, {}}));
  drive(f, two, [&] { return one.closed; });
  CHECK_FALSE(one.task);
  REQUIRE(one.goodbye);
  CHECK(one.goodbye->reason == "this client's key has been revoked");
}

TEST_CASE(
    "A1: a revoked client's tasks end at once: the update it sends is dropped, the round closes without it") {
  Federation f(2, {"run.wait_for_clients=2", "run.rounds=1", "run.round_deadline=3600"});
  HostilePeer one(f);
  one.join(f.token());
  const SecretKey key = SecretKey::generate();
  REQUIRE(f.enrolment().redeem({.secret = f.token(), .key = key.public_key()})->client == ClientId(1));
  auto two = dial(f, *protocol::make_tls_identity(key));
  two.write(hello() + protocol::encode_frame(protocol::RunAnswer{f.run.id, true, SampleCount(4), {}, {}}));
  drive(f, two, [&] { return one.task && two.count(kTypeOf<protocol::TrainRequest>) == 1; });
  // The offer is accepted, but the chunks never arrive.
  two.write(protocol::encode_frame(one.offer(one.zero_update())));
  drive(f, two, [&] { return two.count(MessageType::kChunkRequest) == 1; });
  REQUIRE(f.enrolment().revoke(ClientId(1)));
  drive(f, two, [&] { return two.ended(); });
  REQUIRE(two.goodbye());
  CHECK(two.goodbye()->reason == "this client's key has been revoked");
  f.run_until([&] { return f.reported("client.dropped round=1 client=1 reason=\"revoked\""); });
  one.send_update(one.offer(one.zero_update()), one.zero_update());
  CHECK(one.verdict->accepted);
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 1);
}
