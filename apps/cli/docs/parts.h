// The parts of fedge_doc(), in the order of the help.
#pragma once

#include <vector>

#include "apps/cli/program_doc.h"

namespace fedge::apps {

std::vector<CommandDoc> token_docs();
std::vector<CommandDoc> client_command_docs();
std::vector<CommandDoc> run_docs();
std::vector<CommandDoc> tracks_docs();
std::vector<CommandDoc> audit_docs();
std::vector<CommandDoc> backup_docs();
std::vector<CommandDoc> key_docs();
std::vector<CommandDoc> user_docs();
std::vector<CommandDoc> dht_docs();
std::vector<CommandDoc> data_docs();
std::vector<CommandDoc> model_docs();
std::vector<CommandDoc> privacy_docs();

}  // namespace fedge::apps
