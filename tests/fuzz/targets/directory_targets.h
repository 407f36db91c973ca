// Fuzz target of the directory: the bytes that a stranger's node returns. It also feeds them as the content
// of a correctly signed record, so that the fields behind the signature are reached.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/crypto/ed25519.h"
#include "dht/node_record.h"
#include "dht/record.h"

namespace fedge::fuzz {

// Appends a length-delimited field in protocol buffers encoding.
inline void append_field(std::vector<std::byte>& out, unsigned tag, std::span<const std::byte> value) {
  out.push_back(static_cast<std::byte>(tag));
  std::size_t left = value.size();
  for (; left >= 0x80; left >>= 7) out.push_back(static_cast<std::byte>(0x80 | (left & 0x7f)));
  out.push_back(static_cast<std::byte>(left));
  out.insert(out.end(), value.begin(), value.end());
}

inline std::vector<std::byte> signed_as_it_is(std::span<const std::byte> text) {
  static const SecretKey key = SecretKey::from_seed(std::array<std::uint8_t, 32>{1});
  constexpr std::string_view kPurpose{"fedge directory record 1\0", 25};
  std::vector<std::byte> message;
  for (const char c : kPurpose) message.push_back(static_cast<std::byte>(c));
  message.insert(message.end(), text.begin(), text.end());
  std::vector<std::byte> out;
  append_field(out, 0x0a, text);
  const Signature signature = sign(key, message);
  append_field(out, 0x12, std::as_bytes(std::span(signature)));
  return out;
}

inline void feed_record_bytes(std::span<const std::byte> bytes) {
  const auto claim = dht::read_claim(bytes);
  const Time now(seconds(1));
  const dht::Opened opened = dht::open_record(claim ? claim->key : dht::Key{}, bytes, now);
  if (const auto* refusal = std::get_if<dht::Refusal>(&opened)) {
    FEDGE_CHECK(!refusal->reason.empty(), "a refusal says why");
    return;
  }
  const auto& record = std::get<dht::Record>(opened);
  FEDGE_CHECK(claim, "what is a record says of itself what it is");
  FEDGE_CHECK(
      record.key == claim->key && record.signer == claim->signer && record.sequence == claim->sequence,
      "the same");
  FEDGE_CHECK(dht::key_of(record.content, record.signer) == record.key, "it lies where it may");
  FEDGE_CHECK(record.expires > now && record.expires - now <= dht::kMaxRecordLifetime, "it is of its time");
  FEDGE_CHECK(record.bytes.size() <= dht::kMaxSignedRecord, "it is not too long");
  const dht::Opened again = dht::open_record(record.key, record.bytes, now);
  FEDGE_CHECK(std::holds_alternative<dht::Record>(again) && std::get<dht::Record>(again) == record,
              "what goes on is the same record");
  dht::Opened elsewhere = dht::open_record(dht::Key{1}, record.bytes, now);
  FEDGE_CHECK(std::holds_alternative<dht::Refusal>(elsewhere), "it counts in one place");
}

inline void feed_directory_record(std::span<const std::byte> bytes) {
  feed_record_bytes(bytes);
  feed_record_bytes(signed_as_it_is(bytes));
  const auto node = dht::decode_node_record(bytes);
  if (!node) return;
  const auto encoded = dht::encode_node_record(*node);
  FEDGE_CHECK(encoded, "what was read can be written");
  FEDGE_CHECK(dht::decode_node_record(*encoded).value() == *node, "and read again");
}

}  // namespace fedge::fuzz
