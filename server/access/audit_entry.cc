#include "server/access/audit_entry.h"

#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::string_view kBeforeHash = ",\"hash\":\"";
constexpr std::string_view kAfterHash = "\"}";

std::string quoted(const std::string& text) { return json_text(clean_text(text, kMaxAuditField)); }

std::string entry_hash(const std::string& previous, std::string_view body) {
  return to_hex(sha256(std::string(previous).append(body)));
}

bool is_hash(std::string_view text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool take_text(const nlohmann::ordered_json& object, const char* key, std::string& out) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return false;
  out = it->get<std::string>();
  return true;
}

bool read_fields(const nlohmann::ordered_json& json, AuditEntry& entry) {
  if (!json.is_object() || !json.contains("seq") || !json["seq"].is_number_unsigned()) return false;
  if (!json.contains("details") || !json["details"].is_object()) return false;
  entry.sequence = json["seq"].get<std::uint64_t>();
  for (const auto& [key, value] : json["details"].items()) {
    if (!value.is_string()) return false;
    entry.event.details.emplace_back(key, value.get<std::string>());
  }
  return take_text(json, "time", entry.time) && take_text(json, "actor", entry.event.actor) &&
         take_text(json, "action", entry.event.action) && take_text(json, "subject", entry.event.subject) &&
         take_text(json, "previous", entry.previous) && take_text(json, "hash", entry.hash) &&
         is_hash(entry.previous);
}

Error wrong(const char* what) { return {ErrorCode::kCorrupt, what}; }

}  // namespace

std::string first_audit_hash() { return std::string(kDigits, '0'); }

Result<std::string> format_audit_entry(const AuditEntry& entry) {
  std::string body = "{\"seq\":" + std::to_string(entry.sequence) + ",\"time\":" + quoted(entry.time) +
                     ",\"actor\":" + quoted(entry.event.actor) + ",\"action\":" + quoted(entry.event.action) +
                     ",\"subject\":" + quoted(entry.event.subject) + ",\"details\":{";
  bool first = true;
  for (const auto& [key, value] : entry.event.details) {
    body += (first ? "" : ",") + quoted(key) + ":" + quoted(value);
    first = false;
  }
  body += "},\"previous\":" + quoted(entry.previous);
  std::string line = body;
  line.append(kBeforeHash).append(entry_hash(entry.previous, body)).append(kAfterHash).append("\n");
  if (line.size() > kMaxAuditLine)
    return Error{ErrorCode::kResource, "an entry of the audit log would be longer than the maximum of " +
                                           std::to_string(kMaxAuditLine) + " bytes"};
  return line;
}

Result<AuditEntry> parse_audit_entry(std::string_view line) {
  constexpr std::size_t kTail = kBeforeHash.size() + kDigits + kAfterHash.size();
  if (line.size() < kTail || line.size() >= kMaxAuditLine || !line.ends_with(kAfterHash) ||
      line.substr(line.size() - kTail, kBeforeHash.size()) != kBeforeHash)
    return wrong("it does not end with a hash");
  const auto json = parse_ordered_json(line, /*levels=*/4);
  AuditEntry entry;
  if (!read_fields(json, entry)) return wrong("it is not an entry of an audit log");
  if (entry_hash(entry.previous, line.substr(0, line.size() - kTail)) != entry.hash)
    return wrong("its hash does not match its content");
  const auto again = format_audit_entry(entry);
  if (!again || std::string_view(*again).substr(0, again->size() - 1) != line)
    return wrong("it is not in the canonical form of an entry");
  return entry;
}

}  // namespace fedge::server
