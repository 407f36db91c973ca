// Routes of the audit log.
#include <utility>

#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "server/api/detail/call.h"

namespace fedge::server {
namespace {

Result<Reply> list_audit(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, INT64_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(entries, call.stores.audit().entries_after(after, static_cast<std::size_t>(limit) + 1));
  Json items = Json::array();
  for (const AuditEntry& entry : entries) {
    if (items.size() == limit) return page_of(std::move(items), after + limit);
    FEDGE_TRY(line, format_audit_entry(entry));
    items.push_back(parse_ordered_json(line, kMaxJsonLevels));
  }
  return page_of(std::move(items), std::nullopt);
}

Result<Reply> verify_audit(Call& call) {
  const std::string expected = call.query_text("expect");
  if (!expected.empty() && !is_hex_digest(expected))
    return invalid("the parameter expect must be 64 lower-case hexadecimal digits");
  FEDGE_TRY(summary, call.stores.audit().verify(expected));
  Json json;
  json["entries"] = summary.entries;
  json["head"] = summary.head;
  return Reply{200, std::move(json)};
}

}  // namespace

std::vector<ApiRoute> audit_routes() {
  return {{.method = "GET",
           .path = "/audit",
           .operation = "listAudit",
           .summary = "List entries of the audit log, by number",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = list_audit,
           .answer = "AuditEntry[]",
           .query = {{"after", "integer", "Only entries with a higher number"},
                     {"limit", "integer", "Most entries in the answer, at most 1000; default: 100"}}},
          {.method = "GET",
           .path = "/audit/verification",
           .operation = "verifyAudit",
           .summary = "Check that no entry of the audit log was changed, removed or moved",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = verify_audit,
           .answer = "AuditSummary",
           .query = {{"expect", "string", "Hash of an entry that the log must contain"}}}};
}

}  // namespace fedge::server
