// One line of the audit log: who did what to whom, chained by hash to the line before. Pure text work.
//
//   {"seq":2,"time":"2026-11-21T22:40:00Z","actor":"uid 1000","action":"client.revoked",
//    "subject":"client 3","details":{},"previous":"<64 hex digits>","hash":"<64 hex digits>"}
//
// on one line, in this order and without blanks: there is one text for one entry. `hash` is the SHA-256 of
// `previous`, as its 64 digits, followed by the line's bytes before `,"hash"`. The first line's `previous` is
// 64 zeros.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace fedge::server {

inline constexpr std::size_t kMaxAuditLine = 16 << 10;  // bytes, line feed included

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
  std::string previous;  // the hash of the entry before
  std::string hash;
};

std::string first_audit_hash();  // 64 zeros

// The line, line feed included. Texts are cut to 512 bytes and made printable; `hash` is worked out, the
// entry's own is not looked at. kResource above kMaxAuditLine.
Result<std::string> format_audit_entry(const AuditEntry& entry);
// Of a line without its line feed. The error, kCorrupt, says what is wrong with the line by itself; that
// it continues the line before is the caller's to check.
Result<AuditEntry> parse_audit_entry(std::string_view line);

}  // namespace fedge::server
