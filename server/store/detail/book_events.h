// The audit log's entries about join tokens and clients, from which book_history.h repairs a book. Private to
// store/ and Enrolment. Pure functions.
#pragma once

#include <vector>

#include "server/access/enrolment_book.h"
#include "server/audit_log.h"
#include "server/enrolment.h"

namespace fedge::server {

void add_description(const ClientDescription& description, AuditDetails& details);
AuditEvent tokens_created(const Actor& actor, const std::vector<NewToken>& tokens, const TokenOrder& order);
// The client joined with a token; replaced: in the place of the device with the former key.
AuditEvent client_enrolled(const ClientRecord& client, const Redemption& redemption);
AuditEvent client_replaced(const ClientRecord& client, const PublicKey& former, const Redemption& redemption);

}  // namespace fedge::server
