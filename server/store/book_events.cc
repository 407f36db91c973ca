#include "server/store/detail/book_events.h"

#include <string>
#include <utility>

namespace fedge::server {

void add_description(const ClientDescription& description, AuditDetails& details) {
  if (!description.name.empty()) details.emplace_back("name", description.name);
  if (!description.labels.empty()) details.emplace_back("labels", joined_labels(description.labels));
  if (description.project != kDefaultProject) details.emplace_back("project", description.project);
}

AuditEvent tokens_created(const Actor& actor, const std::vector<NewToken>& tokens, const TokenOrder& order) {
  const std::string first = std::to_string(tokens.front().id);
  AuditDetails details = {{"uses", std::to_string(order.uses)},
                          {"approve", order.approve ? "yes" : "no"},
                          {"expires", calendar_text(order.now + order.lifetime.count())}};
  if (order.replaces) details.emplace_back("replaces", std::to_string(order.replaces->value()));
  add_description(order.description, details);
  return event_by(
      actor, "token.created",
      tokens.size() == 1 ? "token " + first : "tokens " + first + " to " + std::to_string(tokens.back().id),
      std::move(details));
}

namespace {

AuditEvent with_circumstances(AuditEvent event, const ClientRecord& client, const Redemption& redemption) {
  if (!redemption.address.empty()) event.details.emplace_back("address", redemption.address);
  add_description(client.description, event.details);
  return event;
}

}  // namespace

AuditEvent client_enrolled(const ClientRecord& client, const Redemption& redemption) {
  AuditEvent event{"key " + to_hex(client.key),
                   client.state == ClientState::kPending ? "client.pending" : "client.enrolled",
                   "client " + std::to_string(client.client.value()),
                   {{"token", std::to_string(client.token)}}};
  return with_circumstances(std::move(event), client, redemption);
}

AuditEvent client_replaced(const ClientRecord& client, const PublicKey& former,
                           const Redemption& redemption) {
  AuditEvent event{"key " + to_hex(client.key),
                   "client.replaced",
                   "client " + std::to_string(client.client.value()),
                   {{"token", std::to_string(client.token)}, {"former", to_hex(former)}}};
  if (client.state == ClientState::kPending) event.details.emplace_back("approve", "yes");
  return with_circumstances(std::move(event), client, redemption);
}

}  // namespace fedge::server
