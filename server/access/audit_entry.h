// AuditEntry: one line of the audit log. It records who did what to whom, and is chained by hash to the
// previous line. Pure functions on text.
//
//   {"seq":2,"time":"2026-11-21T22:40:00Z","actor":"uid 1000","action":"client.revoked",
//    "subject":"client 3","details":{},"previous":"<64 hex digits>","hash":"<64 hex digits>"}
//
// The entry is on one line, in this order and without blanks, so each entry has exactly one text. `hash` is
// the SHA-256 of the 64 digits of `previous` followed by the line's bytes before `,"hash"`. The first
// line's `previous` is 64 zeros.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace fedge::server {

inline constexpr std::size_t kMaxAuditLine = 16 << 10;  // bytes, line feed included

inline constexpr std::size_t kMaxAuditField = 512;  // bytes of a string; longer ones are cut

struct AuditEvent {
  std::string actor;    // "uid 1000", "key 12ab...", "coordinator"
  std::string action;   // "client.revoked"
  std::string subject;  // "client 3"; may be empty
  std::vector<std::pair<std::string, std::string>> details;
};

struct AuditEntry {
  std::uint64_t sequence = 0;  // from 1
  std::string time;            // calendar_text()
  AuditEvent event;
  std::string previous;  // hash of the previous entry
  std::string hash;
};

std::string first_audit_hash();  // 64 zeros

// Returns the line, line feed included. Cuts strings to 512 bytes and makes them printable. Computes `hash`
// and ignores the entry's own. kResource if the line would exceed kMaxAuditLine.
Result<std::string> format_audit_entry(const AuditEntry& entry);
// Parses a line given without its line feed. kCorrupt says what is wrong with this line. The caller must
// check that the line continues the previous one.
Result<AuditEntry> parse_audit_entry(std::string_view line);

}  // namespace fedge::server
