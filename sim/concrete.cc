#include "sim/concrete.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "core/energy/power_file.h"
#include "core/platform/files.h"
#include "core/platform/processes.h"
#include "core/text.h"
#include "protocol/join_token.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "sim/noise_key.h"

namespace fedge::sim {
namespace {

constexpr std::chrono::hours kTokenLifetime{24};

// Reads the line that a program writes when it listens; kUnavailable if the program ends before.
Result<protocol::Address> read_address(const std::string& name, int fd) {
  std::string line;
  char byte = 0;
  for (;;) {
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) return Error{ErrorCode::kUnavailable, "interrupted"};
    if (got <= 0) return Error{ErrorCode::kUnavailable, name + " did not start"};
    if (byte == '\n') return protocol::parse_address(line);
    line += byte;
  }
}

// Starts a program that supports --ready-fd, and waits until it listens.
Result<protocol::Address> start_listening(ChildProcesses& processes, const std::string& name,
                                          std::vector<std::string> arguments) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return system_error("cannot make a pipe for", name, errno);
  const int inherited = ::fcntl(ready[1], F_DUPFD, 3);  // the program's end: without close-on-exec
  ::close(ready[1]);
  arguments.insert(arguments.end(), {"--ready-fd", std::to_string(inherited)});
  const auto started = processes.start(name, arguments);
  ::close(inherited);
  const auto address = started ? read_address(name, ready[0]) : Result<protocol::Address>(started.error());
  ::close(ready[0]);
  return address;
}

// How clients find the coordinator: its address, or a node of the directory.
struct WayIn {
  protocol::Address coordinator;
  std::optional<protocol::Address> node;
};

Result<void> put_noise_key(const ConcreteOptions& options, const std::filesystem::path& directory,
                           std::optional<ClientId> client) {
  if (!options.noise_seed) return {};
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  return store_key(noise_key(*options.noise_seed, client), directory / "noise.key");
}

Result<void> start_clients(const ConcreteOptions& options, const WayIn& way, ChildProcesses& processes) {
  const auto data = options.scratch / "coordinator";
  FEDGE_TRY(key, server::open_coordinator_key(data));
  server::Enrolment enrolment(data);
  for (std::size_t i = 0; i < options.capabilities.size(); ++i) {
    const double capability = options.capabilities[i];
    FEDGE_TRY(tokens,
              enrolment.create_tokens(
                  {.now = server::calendar_now(),
                   .lifetime = kTokenLifetime,
                   .description = {.labels = options.labels.of(ClientId(static_cast<std::uint32_t>(i)))}}));
    const server::NewToken& created = tokens.front();
    std::vector<protocol::Address> addresses;
    if (!way.node) addresses.push_back(way.coordinator);
    const std::string token = protocol::encode_join_token(
        {.addresses = addresses, .coordinator = key.public_key(), .secret = created.secret});
    const std::string number = std::to_string(created.client->value());
    // Not on the command line, which every user of this machine can read.
    const auto token_file = options.scratch / ("client-" + number + ".token");
    FEDGE_TRY_VOID(write_file_atomic(token_file, token + "\n", 0600));
    std::vector<std::string> arguments{options.program.string(),
                                       "client",
                                       "--state-dir",
                                       (options.scratch / ("client-" + number)).string(),
                                       "--log-level",
                                       options.log_level,
                                       "run",
                                       "--once",
                                       "--allow-split",
                                       "--capability",
                                       number_text(capability),
                                       "--token-file",
                                       token_file.string(),
                                       "--share-base",
                                       (options.scratch / "bases").string()};
    if (!options.powers.empty()) {
      const auto power_file = options.scratch / ("client-" + number + ".power.toml");
      FEDGE_TRY_VOID(write_file_atomic(power_file, power_file_text(*options.powers[i]), 0600));
      arguments.insert(arguments.end(), {"--power", power_file.string()});
    }
    if (!options.data.empty()) arguments.insert(arguments.end(), {"--data", options.data[i]});
    if (way.node)
      arguments.insert(arguments.end(),
                       {"--bootstrap", protocol::to_string(*way.node), "--directory-listen", "127.0.0.1:0"});
    if (options.exchanging) arguments.insert(arguments.end(), {"--peer-listen", "127.0.0.1:0"});
    FEDGE_TRY_VOID(put_noise_key(options, options.scratch / ("client-" + number), *created.client));
    FEDGE_TRY_VOID(processes.start("client " + number, arguments));
  }
  return {};
}

std::filesystem::path directory_program(const std::filesystem::path& program) {
  return program.parent_path() / "fedge";
}

Result<protocol::Address> start_node(const ConcreteOptions& options, ChildProcesses& processes) {
  return start_listening(
      processes, "the directory's node",
      {directory_program(options.program).string(), "dht", "node", "--listen", "127.0.0.1:0"});
}

Result<protocol::Address> start_coordinator(const ConcreteOptions& options,
                                            const std::optional<protocol::Address>& node,
                                            ChildProcesses& processes) {
  std::vector<std::string> arguments{options.program.string(), "coordinator"};
  arguments.insert(arguments.end(),
                   {"--data-dir", (options.scratch / "coordinator").string(), "--listen", "127.0.0.1:0",
                    "--run", options.run_file.string(), "--out", options.out.string(), "--out-is-claimed",
                    "--threads", std::to_string(options.threads), "--log-level", options.log_level});
  for (const std::string& assignment : options.assignments)
    arguments.insert(arguments.end(), {"--set", assignment});
  if (node) {
    const auto file = options.scratch / "coordinator.toml";
    FEDGE_TRY_VOID(write_file_atomic(file, "[directory]\nlisten = \"127.0.0.1:0\"\nbootstrap = [\"" +
                                               protocol::to_string(*node) + "\"]\n"));
    arguments.insert(arguments.end(), {"--config", file.string()});
  }
  return start_listening(processes, "the coordinator", arguments);
}

}  // namespace

Result<void> check_directory_program(const std::filesystem::path& program) {
  const auto file = directory_program(program);
  if (::access(file.c_str(), X_OK) == 0) return {};
  Error error = system_error("cannot start", file, errno);
  error.message += "; --mode concrete with a directory needs fedge in the directory of this program";
  return error;
}

Result<CoordinatorUsage> run_concrete(const ConcreteOptions& options) {
  ChildProcesses processes;
  WayIn way;
  if (options.in_directory) {
    FEDGE_TRY(node, start_node(options, processes));
    way.node = node;
  }
  FEDGE_TRY_VOID(put_noise_key(options, options.scratch / "coordinator", {}));
  FEDGE_TRY(coordinator, start_coordinator(options, way.node, processes));
  way.coordinator = coordinator;
  FEDGE_TRY_VOID(start_clients(options, way, processes));
  for (;;) {
    const auto ended = processes.wait(options.interrupted);
    if (options.interrupted && options.interrupted()) return Error{ErrorCode::kUnavailable, "interrupted"};
    if (!ended.name.empty() && ended.failed()) return Error{ErrorCode::kUnavailable, ended.describe()};
    // Clients end with the run; ~ChildProcesses stops those that missed the last message.
    if (ended.name == "the coordinator")
      return CoordinatorUsage{.peak_memory = Bytes(ended.peak_memory),
                              .processor_seconds = ended.processor_seconds};
  }
}

}  // namespace fedge::sim
