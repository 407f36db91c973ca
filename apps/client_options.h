// The commands and options of fedge-client and their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/trainer_options.h"
#include "privacy/secure_aggregation/graph_parameters.h"

namespace CLI {
class App;
}

namespace fedge::apps {

struct ClientOptions {
  std::string program;  // its name
  std::string state_directory;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string token;
  std::string token_file;
  double capability = 1;
  std::string power_file;  // empty: not given
  bool measure_energy = false;
  std::vector<std::string> data_directories;  // DIR, or NAME=DIR
  std::vector<std::string> streams;           // NAME=PATH
  std::vector<std::string> screening;         // FILE, or NAME=FILE
  std::size_t stream_mb = 64;
  double stream_test = 0.2;
  bool once = false;
  bool no_evaluation = false;
  bool no_statistics = false;
  TrainerArguments trainer;
  std::size_t cache_mb = 1024;
  std::string share_base;  // directory; empty: not given
  std::string format = "table";
  std::vector<std::string> bootstrap;  // HOST:PORT; if any, the client is a node of the directory
  std::string directory_listen = "0.0.0.0:0";
  std::string run_name;
  std::string coordinator;             // its key
  std::vector<std::string> addresses;  // move: of the coordinator
  bool unchecked = false;              // move: without connecting
  std::vector<std::string> withheld;
  std::string peer_listen;  // empty: other clients cannot connect to this one
  std::string peer_announce;
  double upload_mbit = 0;
  bool only_secure = false;
  bool splits = false;
  std::uint32_t min_clients = 0;
  double corrupt = privacy::GraphAssumptions().corrupt;
  double max_epsilon = 0;  // 0: not given
  double max_delta = 1e-5;
  double require_noise = 0;               // 0: not given
  std::uint32_t max_updates_per_day = 0;  // 0: any number

  bool has_token() const { return !token.empty() || !token_file.empty(); }
};

// The default of --state-dir: a directory below XDG_STATE_HOME or HOME.
std::string default_client_state();

struct ClientCommands {
  CLI::App* join;
  CLI::App* run;
  CLI::App* move;
  CLI::App* key;
  CLI::App* status;
  CLI::App* doctor;
};
// Adds the commands and options; the parser writes their values to `options`.
ClientCommands add_client_commands(CLI::App& app, ClientOptions& options);

}  // namespace fedge::apps
