#include "dht/record.h"

#include <doctest/doctest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "core/rng.h"
#include "dht/record_guard.h"
#include "tests/support/directory_suite.h"

namespace fedge::dht {
namespace {

using suite::key_number;

constexpr Time kNow = Time(seconds(1000));

Record make(std::uint8_t signer, std::uint64_t sequence, Content content, double expires = 1060) {
  auto made = make_record(key_number(signer), {sequence, Time(seconds(expires))}, std::move(content));
  REQUIRE(made);
  return *made;
}
Record node(std::uint8_t signer, std::uint64_t sequence, double expires = 1060) {
  return make(signer, sequence, NodeStatus{RunId(7), {.round = 2, .latency_ms = 3.5, .labels = {1, 0}}},
              expires);
}

std::vector<Content> one_of_each() {
  PeerList peers{.object = sha256("object"), .peers = {}};
  for (std::uint8_t i = 0; i < kMaxListedPeers; ++i)
    peers.peers.push_back({{"2001:db8::7", std::uint16_t(7000 + i)}, key_number(i).public_key()});
  return {Announcement{{{"192.0.2.7", 7433}, {"dht.example.org", 1}}, "fashion", RunId(9)},
          Announcement{{{"192.0.2.7", 7433}}, "", RunId()},
          NodeStatus{RunId(7), {.round = 2, .sequence = 5, .utility = 12.0, .labels = {}}},
          ModelPointer{RunId(7), TrackId(3), RoundNumber(12), sha256("manifest"), Bytes(1'000'000)}, peers};
}

Flaw flaw_of(const Key& key, const std::vector<std::byte>& bytes, Time now = kNow) {
  const Opened opened = open_record(key, bytes, now);
  REQUIRE(std::holds_alternative<Refusal>(opened));
  CHECK_FALSE(std::get<Refusal>(opened).reason.empty());
  return std::get<Refusal>(opened).flaw;
}

// The two length-delimited fields 1 and 2 of a message, parsed by hand.
std::pair<std::string, std::string> two_fields(const std::vector<std::byte>& bytes) {
  std::size_t at = 0;
  const auto next = [&] { return std::to_integer<unsigned>(bytes.at(at++)); };
  const auto field = [&](unsigned tag) {
    REQUIRE(next() == tag);
    std::size_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      const unsigned byte = next();
      size |= std::size_t{byte & 0x7f} << shift;
      if (byte < 0x80) break;
    }
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(next());
    return text;
  };
  const std::string first = field(0x0a);
  return {first, field(0x12)};
}

// Signs the record with another key field, whatever its content says.
std::vector<std::byte> with_key(const Record& record, const Key& key, const SecretKey& signer) {
  std::string text = two_fields(record.bytes).first;
  const auto raw = [](const auto& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::size_t at = text.find(raw(record.key));
  REQUIRE(at != std::string::npos);
  text.replace(at, key.size(), raw(key));
  const std::string purpose = std::string("fedge directory record 1") + '\0' + text;
  const auto signature = sign(signer, std::as_bytes(std::span(purpose)));
  REQUIRE(text.size() < 128);  // its length is one byte
  const std::string bytes =
      "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x12\x40" + raw(signature);
  const auto all = std::as_bytes(std::span(bytes));
  return {all.begin(), all.end()};
}

bool openssl_verifies(const PublicKey& key, const std::string& text, const std::string& signature) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> public_key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size()),
      EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const auto raw = [](const std::string& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
  };
  return EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, public_key.get()) == 1 &&
         EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(text), text.size()) == 1;
}

// Number of records that the guard has ignored.
std::uint64_t flaws_of(const RecordGuard& guard) {
  const auto& counts = guard.counts().counts;
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("record: every kind comes back as it was, under its own key") {
  for (const Content& content : one_of_each()) {
    const Record record = make(1, 5, content);
    CHECK(record.content == content);
    CHECK(record.signer == key_number(1).public_key());
    CHECK(record.expires == Time(seconds(1060)));
    const Opened opened = open_record(record.key, record.bytes, kNow);
    REQUIRE(std::holds_alternative<Record>(opened));
    CHECK(std::get<Record>(opened) == record);
    CHECK(record.bytes.size() <= kMaxSignedRecord);
  }
}

TEST_CASE("record: the signature is Ed25519 over the purpose, a zero byte and the record") {
  const Record record = node(1, 5);
  const auto [text, signature] = two_fields(record.bytes);
  const std::string purpose = std::string("fedge directory record 1") + '\0';
  CHECK(openssl_verifies(record.signer, purpose + text, signature));
  CHECK_FALSE(openssl_verifies(record.signer, text, signature));
  CHECK_FALSE(openssl_verifies(key_number(2).public_key(), purpose + text, signature));
}

TEST_CASE("record: keys are SHA-256 of a purpose and what is named") {
  // printf 'fedge run\0fashion' | sha256sum
  CHECK(to_hex(run_key("fashion")) == to_hex(sha256(std::string("fedge run\0fashion", 17))));
  std::string text("fedge coordinator\0", 18);
  const PublicKey signer = key_number(1).public_key();
  const std::string raw(signer.bytes.begin(), signer.bytes.end());
  CHECK(coordinator_key(signer) == sha256(text + raw));
  const std::string run("\x02\x01\0\0\0\0\0\0", 8);
  CHECK(node_key(signer, RunId(0x0102)) == sha256(std::string("fedge node\0", 11) + raw + run));
  CHECK(model_key(signer, RunId(0x0102), TrackId(3)) ==
        sha256(std::string("fedge model\0", 12) + raw + run + std::string("\x03\0\0\0", 4)));
  const Digest object = sha256("x");
  CHECK(peers_key(object) ==
        sha256(std::string("fedge peers\0", 12) + std::string(object.begin(), object.end())));
}

TEST_CASE("record: a bit flipped anywhere makes it no record, or the record it was") {
  const Record record = node(1, 5);
  int refused = 0;
  for (std::size_t i = 0; i < record.bytes.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto bytes = record.bytes;
      bytes[i] ^= static_cast<std::byte>(1U << bit);
      const Opened opened = open_record(record.key, bytes, kNow);
      if (std::holds_alternative<Record>(opened))
        CHECK(std::get<Record>(opened) == record);
      else
        ++refused;
    }
  CHECK(refused == 8 * static_cast<int>(record.bytes.size()));
}

TEST_CASE("record: what others put beside the signed bytes does not go on") {
  const Record record = node(1, 5);
  auto bytes = record.bytes;
  bytes.insert(bytes.end(), {std::byte{0xfa}, std::byte{0x07}, std::byte{0x02}, std::byte{1}, std::byte{2}});
  const Opened opened = open_record(record.key, bytes, kNow);
  REQUIRE(std::holds_alternative<Record>(opened));
  CHECK(std::get<Record>(opened).bytes == record.bytes);
}

TEST_CASE("record: each flaw is told from the others") {
  const Record record = node(1, 5);
  CHECK(flaw_of(record.key, std::vector<std::byte>(kMaxSignedRecord + 1)) == Flaw::kOversized);
  CHECK(flaw_of(record.key, {}) == Flaw::kMalformed);
  CHECK(flaw_of(record.key, std::vector<std::byte>(100, std::byte{9})) == Flaw::kMalformed);
  CHECK(flaw_of(node(2, 5).key, record.bytes) == Flaw::kMisplaced);
  CHECK(flaw_of(record.key, record.bytes, Time(seconds(1060))) == Flaw::kExpired);
  CHECK(flaw_of(record.key, record.bytes, Time(seconds(1060)) - kMaxRecordLifetime - seconds(1)) ==
        Flaw::kFarFetched);
  auto forged = record.bytes;
  forged.back() ^= std::byte{1};
  CHECK(flaw_of(record.key, forged) == Flaw::kForged);
  for (std::size_t i = 0; i < kFlaws; ++i) CHECK(std::string(to_string(Flaw(i))) != "unknown");
}

TEST_CASE("record: another's statement under a key of its own is not the signer's to make") {
  // Node 1 signs a record that is stored where node 2's status belongs: the key would have to be false.
  const Record mine = node(1, 5);
  CHECK(flaw_of(node_key(key_number(2).public_key(), RunId(7)), mine.bytes) == Flaw::kMisplaced);
  CHECK(flaw_of(coordinator_key(key_number(2).public_key()),
                make(1, 5, Announcement{{{"192.0.2.7", 1}}, "", RunId()}).bytes) == Flaw::kMisplaced);
  // The record now states node 2's key, and node 1 signs that.
  const Key theirs = node_key(key_number(2).public_key(), RunId(7));
  CHECK(flaw_of(theirs, with_key(mine, theirs, key_number(1))) == Flaw::kMisplaced);
  CHECK(std::holds_alternative<Record>(open_record(mine.key, with_key(mine, mine.key, key_number(1)), kNow)));
}

TEST_CASE("record: what nobody would take is not made, and the field is named") {
  const auto refused = [](Content content, const std::string& says, double expires = 1060) {
    CAPTURE(says);
    const auto made = make_record(key_number(1), {1, Time(seconds(expires))}, std::move(content));
    REQUIRE_FALSE(made);
    CHECK(made.error().message.find(says) != std::string::npos);
  };
  refused(Announcement{}, "0 addresses");
  refused(Announcement{std::vector<protocol::Address>(5, {"192.0.2.7", 1}), "", RunId()}, "5 addresses");
  refused(Announcement{{{"192.0.2.7", 0}}, "", RunId()}, "is not an address");
  refused(Announcement{{{"no host", 1}}, "", RunId()}, "is not an address");
  refused(Announcement{{{"192.0.2.7", 1}}, std::string("a\0b", 3), RunId()}, "name");
  refused(Announcement{{{"192.0.2.7", 1}}, std::string(1025, 'a'), RunId()}, "name");
  refused(PeerList{}, "0 addresses of peers");
  refused(PeerList{{}, std::vector<PeerList::Peer>(17, {{"192.0.2.7", 1}, {}})}, "17 addresses of peers");
  refused(NodeStatus{RunId(7), {.latency_ms = -1.0}}, "latency");
  refused(NodeStatus{RunId(7), {}}, "before 1970", -5);
}

TEST_CASE("record: bytes that are none say nothing of themselves, others what they say") {
  const Record record = node(1, 5);
  const auto claim = read_claim(record.bytes);
  REQUIRE(claim);
  CHECK(claim->key == record.key);
  CHECK(claim->signer == record.signer);
  CHECK(claim->sequence == 5);
  CHECK_FALSE(read_claim({}));
  CHECK_FALSE(read_claim(std::vector<std::byte>(kMaxSignedRecord + 1)));
}

TEST_CASE("record guard: the latest of each signer is given out, and never an earlier one again") {
  RecordGuard guard;
  const Record first = node(1, 5), second = node(1, 6), other = node(1, 6, 1050);
  const auto latest = [&](const std::vector<Record>& records) {
    std::vector<std::vector<std::byte>> values;
    for (const Record& record : records) values.push_back(record.bytes);
    return guard.latest(first.key, values, kNow);
  };
  CHECK(latest({first}) == std::vector{first});
  CHECK(latest({first}) == std::vector{first});
  CHECK(latest({first, second, first}) == std::vector{second});
  CHECK(flaws_of(guard) == 0);  // no flaw: nodes keep earlier records for a while
  CHECK(latest({first}).empty());
  CHECK(latest({first, other}).empty());
  CHECK(latest({second}) == std::vector{second});
  CHECK(guard.counts()[Flaw::kRolledBack] == 1);
  CHECK(guard.counts()[Flaw::kConflicting] == 1);
  CHECK(latest({node(2, 9), second}) == std::vector{second});
  CHECK(guard.counts()[Flaw::kMisplaced] == 1);
  CHECK(flaws_of(guard) == 3);
}

TEST_CASE("record guard: signers are given out in the order of their keys, so many at most") {
  RecordGuard guard;
  std::vector<Record> records;
  std::vector<std::vector<std::byte>> values;
  for (std::uint32_t i = 0; i < kMaxSignersPerKey + 5; ++i) {
    std::array<std::uint8_t, 32> seed{};
    std::memcpy(seed.data(), &i, sizeof i);
    const auto made = make_record(SecretKey::from_seed(seed), {1, Time(seconds(1060))},
                                  Announcement{{{"192.0.2.7", 7433}}, "fashion", RunId(7)});
    REQUIRE(made);
    records.push_back(*made);
    values.push_back(made->bytes);
  }
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.signer < b.signer; });
  records.resize(kMaxSignersPerKey);
  CHECK(guard.latest(run_key("fashion"), values, kNow) == records);
}

TEST_CASE("record guard: its memory is bounded, keeps who is in it, and has room again as records end") {
  RecordGuard guard(2);
  const auto taken = [&](const Record& record, Time now = kNow) {
    return !guard.latest(record.key, {record.bytes}, now).empty();
  };
  CHECK(taken(node(1, 5, 1010)));
  CHECK(taken(node(2, 5, 1020)));
  CHECK(taken(node(3, 5)));  // beyond the guard's memory: not remembered
  CHECK(guard.remembered() == 2);
  CHECK(taken(node(3, 4)));
  CHECK_FALSE(taken(node(1, 4)));
  const Time later = Time(seconds(1011));
  CHECK(taken(node(3, 7), later));
  CHECK(guard.remembered() == 2);
  CHECK_FALSE(taken(node(3, 6), later));
  CHECK_FALSE(taken(node(2, 4), later));
}

TEST_CASE("record guard: what has ended, or could not last so long by a clock put right, is forgotten") {
  RecordGuard guard(1);
  const auto taken = [&](const Record& record, Time now) {
    return !guard.latest(record.key, {record.bytes}, now).empty();
  };
  CHECK(taken(node(1, 5, 1010), kNow));
  CHECK_FALSE(taken(node(1, 4, 1060), Time(seconds(1009))));
  CHECK(taken(node(1, 4, 1060), Time(seconds(1010))));
  CHECK_FALSE(taken(node(1, 3, 1060), Time(seconds(1010))));
  const double ahead = 1e9;
  CHECK(taken(node(1, 90, ahead + 60), Time(seconds(ahead))));
  CHECK_FALSE(taken(node(1, 6, ahead + 60), Time(seconds(ahead))));
  CHECK(taken(node(1, 6, 1060), kNow));
  CHECK_FALSE(taken(node(1, 5, 1060), kNow));
  // The memory of records that were seen ahead of time has space again.
  CHECK(taken(node(1, 90, ahead + 60), Time(seconds(ahead))));
  CHECK(taken(node(2, 90, ahead + 60), Time(seconds(ahead))));
  CHECK(taken(node(2, 9, 1060), kNow));
  CHECK_FALSE(taken(node(2, 8, 1060), kNow));
}

TEST_CASE("record: hostile bytes are refused, whatever they are") {
  Rng rng(3);
  const std::vector<Content> contents = one_of_each();
  for (int trial = 0; trial < 3'000; ++trial) {
    const Record record = make(1, 5, contents[rng.below(contents.size())]);
    auto bytes = record.bytes;
    for (std::uint64_t cuts = rng.below(4); cuts > 0; --cuts)
      bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
    if (rng.below(3) == 0) bytes.resize(rng.below(bytes.size()));
    const Opened opened = open_record(record.key, bytes, kNow);
    if (std::holds_alternative<Record>(opened)) CHECK(std::get<Record>(opened) == record);
    static_cast<void>(read_claim(bytes));
  }
}

}  // namespace fedge::dht
