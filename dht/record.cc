#include "dht/record.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "dht/detail/wire.h"

namespace fedge::dht {
namespace {

using std::chrono::milliseconds;

// Signed in front of each record, so that signatures for other purposes are not valid for records.
constexpr std::string_view kDomain = "fedge directory record 1";

std::vector<std::byte> signed_text(std::string_view record) {
  std::vector<std::byte> text;
  text.reserve(kDomain.size() + 1 + record.size());
  for (const char c : kDomain) text.push_back(static_cast<std::byte>(c));
  text.push_back(std::byte{0});
  for (const char c : record) text.push_back(static_cast<std::byte>(c));
  return text;
}

std::vector<std::byte> serialize(const std::string& record, const Signature& signature) {
  wire::SignedRecord made;
  made.set_record(record);
  made.set_signature(signature.data(), signature.size());
  std::vector<std::byte> bytes(made.ByteSizeLong());
  made.SerializeToArray(bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Opened malformed(std::string reason) { return Refusal{Flaw::kMalformed, std::move(reason)}; }

// Reads and checks what needs neither the key, the time nor the signature.
Opened read_fields(const wire::DirectoryRecord& in) {
  if (in.version() != kRecordVersion)
    return malformed("its format version is " + std::to_string(in.version()) +
                     ", but this program supports version " + std::to_string(kRecordVersion));
  Record record{.sequence = in.sequence()};
  if (!take_bytes(in.key(), record.key)) return malformed("its key does not have 32 bytes");
  if (!take_bytes(in.signer(), record.signer.bytes)) return malformed("its signer does not have 32 bytes");
  // Expiry times that Time cannot represent exceed every valid lifetime.
  const auto latest = std::chrono::duration_cast<milliseconds>(Duration::max()).count();
  if (in.expires_ms() > static_cast<std::uint64_t>(latest))
    return malformed("its expiry time is out of range");
  record.expires = Time(milliseconds(static_cast<std::int64_t>(in.expires_ms())));
  auto content = content_from_wire(in);
  if (!content) return malformed(content.error().message);
  record.content = std::move(*content);
  if (auto* node = std::get_if<NodeStatus>(&record.content)) node->record.sequence = record.sequence;
  return record;
}

}  // namespace

const char* to_string(Flaw flaw) {
  switch (flaw) {
    case Flaw::kOversized:
      return "oversized";
    case Flaw::kMalformed:
      return "malformed";
    case Flaw::kForged:
      return "forged";
    case Flaw::kMisplaced:
      return "misplaced";
    case Flaw::kExpired:
      return "expired";
    case Flaw::kFarFetched:
      return "far-fetched";
    case Flaw::kRolledBack:
      return "rolled back";
    case Flaw::kConflicting:
      return "conflicting";
  }
  return "unknown";
}

Result<Record> make_record(const SecretKey& signer, const RecordTerms& terms, Content content) {
  const auto expires = std::chrono::floor<milliseconds>(terms.expires.time_since_epoch());
  if (expires.count() < 0) return invalid("directory record: its expiry time is before 1970");
  wire::DirectoryRecord made;
  made.set_version(kRecordVersion);
  const Key key = key_of(content, signer.public_key());
  made.set_key(key.data(), key.size());
  made.set_signer(signer.public_key().bytes.data(), signer.public_key().bytes.size());
  made.set_sequence(terms.sequence);
  made.set_expires_ms(static_cast<std::uint64_t>(expires.count()));
  to_wire(content, made);
  const std::string text = made.SerializeAsString();
  const auto bytes = serialize(text, sign(signer, signed_text(text)));
  // Refuse to publish a record that no node would accept.
  if (bytes.size() > kMaxSignedRecord)
    return invalid("directory record: " + std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(kMaxSignedRecord) + " are allowed");
  Opened read = read_fields(made);
  if (const auto* refusal = std::get_if<Refusal>(&read))
    return invalid("directory record: " + refusal->reason);
  auto record = std::get<Record>(std::move(read));
  record.bytes = bytes;
  return record;
}

std::optional<Claim> read_claim(std::span<const std::byte> bytes) {
  wire::SignedRecord envelope;
  wire::DirectoryRecord inner;
  Claim claim;
  if (bytes.size() > kMaxSignedRecord || !parse_message(bytes, envelope) ||
      !parse_message(std::as_bytes(std::span(envelope.record())), inner) ||
      !take_bytes(inner.key(), claim.key) || !take_bytes(inner.signer(), claim.signer.bytes))
    return std::nullopt;
  claim.sequence = inner.sequence();
  return claim;
}

Opened open_record(const Key& key, std::span<const std::byte> bytes, Time now) {
  if (bytes.size() > kMaxSignedRecord)
    return Refusal{Flaw::kOversized, std::to_string(bytes.size()) + " bytes; at most " +
                                         std::to_string(kMaxSignedRecord) + " are allowed"};
  wire::SignedRecord envelope;
  wire::DirectoryRecord inner;
  Signature signature{};
  if (!parse_message(bytes, envelope) || !take_bytes(envelope.signature(), signature) ||
      !parse_message(std::as_bytes(std::span(envelope.record())), inner))
    return malformed("its bytes are not a valid SignedRecord message");
  Opened opened = read_fields(inner);
  auto* record = std::get_if<Record>(&opened);
  if (record == nullptr) return opened;
  // Cheap checks come first, so that a flood of records failing them costs no signature check.
  if (record->key != key || key_of(record->content, record->signer) != key)
    return Refusal{Flaw::kMisplaced, "it is stored under another key than the one it was signed for"};
  if (record->expires <= now) return Refusal{Flaw::kExpired, "it has expired"};
  if (record->expires - now > kMaxRecordLifetime)
    return Refusal{Flaw::kFarFetched, "its expiry time is more than a day in the future"};
  if (!verify(record->signer, signed_text(envelope.record()), signature))
    return Refusal{Flaw::kForged, "its signature does not verify with its signer's key"};
  // Re-encode, to drop anything that others added beside the signed bytes.
  record->bytes = serialize(envelope.record(), signature);
  return opened;
}

}  // namespace fedge::dht
