// Messages of secure aggregation on the wire: malformed ones are refused before a role receives them.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <variant>

#include "protocol/codec.h"
#include "protocol/codecs/payload_codec.h"
#include "tests/unit/protocol/example_messages.h"

namespace fedge::protocol {
namespace {

// Changes an example message of this type and returns the decoder's error.
template <class T, class Change>
std::string change_refusal(const Change& change) {
  for (const Message& message : example_messages()) {
    const auto* example = std::get_if<T>(&message);
    if (example == nullptr) continue;
    T changed = *example;
    change(changed);
    const std::string bytes = encode(Message(std::move(changed)));
    const auto result = decode(type_of(message), std::as_bytes(std::span(bytes)));
    return result ? "accepted" : result.error().message;
  }
  return "no example";
}

template <class T, class Change>
void check_refused(const std::string& words, const Change& change) {
  const std::string said = change_refusal<T>(change);
  INFO(said);
  CHECK(said.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("codec: a roster whose numbers do not fit each other is refused") {
  using Roster = SecureRoster;
  CHECK(change_refusal<Roster>([](Roster&) {}) == "accepted");
  check_refused<Roster>("members is not between 1 and 65536", [](Roster& m) { m.members = 65'537; });
  check_refused<Roster>("members is not between 1 and 65536", [](Roster& m) { m.members = 0; });
  check_refused<Roster>("number is not less than members", [](Roster& m) { m.number = 20; });
  check_refused<Roster>("cipher", [](Roster& m) { m.cipher = static_cast<StreamCipher>(3); });
  check_refused<Roster>("cipher", [](Roster& m) { m.cipher = static_cast<StreamCipher>(0); });
  check_refused<Roster>("cells are not ascending", [](Roster& m) { std::swap(m.cells[0], m.cells[1]); });
  check_refused<Roster>("cells are not ascending", [](Roster& m) { m.cells[0].end = 501; });
  check_refused<Roster>("cells are not ascending", [](Roster& m) { m.cells[0].end = m.cells[0].begin; });
  check_refused<Roster>("cells are not ascending", [](Roster& m) { m.cells[2].end = kMaxParameters + 1; });
  check_refused<Roster>("cells: the number of elements is above 16380", [](Roster& m) {
    m.cells.clear();
    for (std::size_t i = 0; i <= kMaxSecureCells; ++i) m.cells.push_back({i, i + 1});
  });
  check_refused<Roster>("coverages: the number of elements is above 4096",
                        [](Roster& m) { m.coverages.resize(4097, m.coverages[0]); });
  check_refused<Roster>("coverages: the coverage is empty", [](Roster& m) { m.coverages[0] = {}; });
  check_refused<Roster>("coverage_of", [](Roster& m) { m.coverage_of.resize(65'537); });
  check_refused<Roster>("peers are not ascending", [](Roster& m) { std::swap(m.peers[0], m.peers[1]); });
  check_refused<Roster>("peers are not ascending", [](Roster& m) { m.peers[1] = m.peers[0]; });
  check_refused<Roster>("peers are not ascending", [](Roster& m) { m.peers[1].number = 20; });
  check_refused<Roster>("peers: the number of elements is above 1024",
                        [](Roster& m) { m.peers.resize(1025, m.peers[0]); });
}

TEST_CASE("codec: lists of shares, consents and survivors are ascending, and no longer than they may be") {
  const auto check_list = [](const std::string& words, auto example, auto&& list) {
    using T = decltype(example);
    check_refused<T>(words, [&](T& m) { std::swap(list(m)[0], list(m)[1]); });
    check_refused<T>(words, [&](T& m) { list(m)[1] = list(m)[0]; });
    const bool is_survivors = std::is_same_v<T, SecureSurvivors>;
    const std::size_t most = is_survivors ? kMaxSecureMembers : kMaxSecurePeers;
    check_refused<T>(": the number of elements is above " + std::to_string(most),
                     [&](T& m) { list(m).resize(most + 1, list(m)[0]); });
  };
  check_list(
      "shares are not in ascending order", SecureShares{}, [](auto& m) -> auto& { return m.shares; });
  check_list(
      "shares are not in ascending order", SecurePeerShares{}, [](auto& m) -> auto& { return m.shares; });
  check_list(
      "numbers are not in ascending order", SecureSurvivors{}, [](auto& m) -> auto& { return m.numbers; });
  check_list(
      "consents are not in ascending order", SecureConsents{}, [](auto& m) -> auto& { return m.consents; });
  check_list(
      "survivors are not in ascending order", SecureUnmask{}, [](auto& m) -> auto& { return m.survivors; });
  check_refused<SecureUnmask>("dropped are not in ascending order",
                              [](SecureUnmask& m) { m.dropped.push_back(m.dropped[0]); });
}

TEST_CASE("codec: keys, signatures and shares of another length are refused") {
  // Field 5 (keys) holds the advertisement. The last occurrence of a field counts, so that appended ones
  // override it.
  const auto with_key = [](char field, std::size_t size) {
    std::string inside(1, static_cast<char>(field << 3 | 2));
    inside += static_cast<char>(size);
    inside.append(size, 'x');
    return encode(SecureKeys{example_session(), example_keys(1)}) + "\x2a" +
           std::string(1, static_cast<char>(inside.size())) + inside;
  };
  const auto said = [](MessageType type, const std::string& bytes) {
    const auto result = decode(type, std::as_bytes(std::span(bytes)));
    return result ? "accepted" : result.error().message;
  };
  CHECK(said(kTypeOf<SecureKeys>, with_key(1, 32)) == "accepted");
  CHECK(said(kTypeOf<SecureKeys>, with_key(1, 31)) == "secure_keys: channel is not 32 bytes");
  CHECK(said(kTypeOf<SecureKeys>, with_key(2, 33)) == "secure_keys: mask is not 32 bytes");
  CHECK(said(kTypeOf<SecureKeys>, with_key(3, 0)) == "secure_keys: commitment is not 32 bytes");
  CHECK(said(kTypeOf<SecureKeys>, with_key(5, 63)) == "secure_keys: signature is not 64 bytes");
  CHECK(said(kTypeOf<SecureKeys>, "") == "secure_keys: channel is not 32 bytes");
  CHECK(said(kTypeOf<SecureConsent>, "") == "secure_consent: signature is not 64 bytes");
  // One more number than there are boxes.
  CHECK(
      said(kTypeOf<SecurePeerShares>, encode(SecurePeerShares{example_session(), {{3, {}}}}) + "\x2a\x01\x09")
          .find("96 bytes each") != std::string::npos);
}

TEST_CASE("codec: a masked update can be offered, and is never read as values") {
  const Manifest masked = example_masked_manifest();
  CHECK(validate(masked));
  Manifest wide = masked;
  wide.codec = Codec::kMasked64;
  CHECK(validate(wide).error().message.find("24000") != std::string::npos);
  Manifest squeezed = masked;
  squeezed.raw_size = squeezed.payload_size;
  CHECK(validate(squeezed).error().message == "masked values cannot be compressed with zstd");
  check_refused<UpdateOffer>("masked_scalars: the number of elements is above 8192",
                             [](UpdateOffer& m) { m.masked_scalars.resize(8193); });
  struct Nothing final : ChunkSource {
    Result<void> read_part(std::size_t, std::size_t, std::span<std::byte>) override { return {}; }
  } nothing;
  const auto decoder = PayloadDecoder::open(masked, nothing);
  REQUIRE_FALSE(decoder);
  CHECK(decoder.error().message == "masked values cannot be decoded; they can only be summed");
}

}  // namespace fedge::protocol
