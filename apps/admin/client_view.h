// How the command-line tool shows clients and the tasks of a round.
#pragma once

#include <string>
#include <vector>

#include "apps/admin/admin_client.h"

namespace fedge::apps {

// "2 h ago" for a time of the API; "now" within a second.
std::string ago(const std::string& time);
// "12.3 KB".
std::string size_text(std::uint64_t bytes);

// Rows of 'fedge client ls'.
std::string clients_table(const Json& clients);
// All about one client, a line for each field.
std::string client_lines(const Json& client);
// Rows of 'fedge client transfers'.
std::string transfers_table(const Json& transfers);
// The progress of a run: what it waits for, who declined, and the tasks of the current and the last round.
std::string progress_text(const Json& progress);

}  // namespace fedge::apps
