#include "server/data_directory.h"

#include <sstream>
#include <utility>

#include "core/platform/files.h"
#include "server/enrolment.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {
namespace {

constexpr const char* kAddressesFile = "addresses";
constexpr std::size_t kMaxAddressesFile = 4 << 10;

}  // namespace

Result<SecretKey> open_coordinator_key(const std::filesystem::path& data_directory) {
  FEDGE_TRY_VOID(make_directory(data_directory, 0700));
  const std::filesystem::path file = data_directory / "node.key";
  if (identity_of(file)) return load_or_create_key(file);
  FEDGE_TRY(had_key, Enrolment(data_directory).has_coordinator());
  if (had_key)
    return Error{ErrorCode::kNotFound,
                 file.string() + " is missing, but the clients in " +
                     enrolment_path(data_directory).string() +
                     " trust only that key; restore the file from a backup, or use an empty data directory"};
  return load_or_create_key(file);
}

Result<Secret> open_noise_key(const std::filesystem::path& data_directory) {
  FEDGE_TRY(key, load_or_create_key(data_directory / "noise.key"));
  return Secret(key.seed());
}

Result<protocol::Address> last_address(const std::filesystem::path& data_directory) {
  auto text = read_file(data_directory / "address", 1024);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "no coordinator has ever listened with the data directory " +
                                           data_directory.string() +
                                           "; give the coordinator's address with --address HOST:PORT"};
  if (!text) return text.error();
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return protocol::parse_address(*text);
}

Result<std::vector<protocol::Address>> client_addresses(const std::filesystem::path& data_directory) {
  std::vector<protocol::Address> addresses;
  const auto text = read_file(data_directory / kAddressesFile, kMaxAddressesFile);
  if (!text && text.error().code != ErrorCode::kNotFound) return text.error();
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    auto address = protocol::parse_address(line);
    if (!address || addresses.size() == protocol::kMaxCoordinatorAddresses)
      return Error{ErrorCode::kCorrupt,
                   (data_directory / kAddressesFile).string() + ", line " +
                       std::to_string(addresses.size() + 1) + ": " +
                       (address ? "there are more than 4 addresses" : address.error().message) +
                       "; remove the file, which the coordinator writes again when it starts"};
    addresses.push_back(std::move(*address));
  }
  if (!addresses.empty()) return addresses;
  FEDGE_TRY(listening, last_address(data_directory));
  return std::vector{std::move(listening)};
}

Result<void> write_addresses(const std::filesystem::path& data_directory, const protocol::Address& listening,
                             const std::vector<protocol::Address>& configured) {
  std::string text;
  for (const protocol::Address& address : configured) text += protocol::to_string(address) + "\n";
  std::error_code error;
  if (configured.empty())
    std::filesystem::remove(data_directory / kAddressesFile, error);
  else
    FEDGE_TRY_VOID(write_file_atomic(data_directory / kAddressesFile, text));
  if (error) return system_error("cannot remove", data_directory / kAddressesFile, error.value());
  return write_file_atomic(data_directory / "address", protocol::to_string(listening) + "\n");
}

Result<void> check_coordinator_data(const std::filesystem::path& data_directory) {
  // Not node.key: a client's state directory has one, too.
  for (const char* name : {"enrolment.db", "runs.db", "audit.log", "address"}) {
    const auto found = identity_of(data_directory / name);
    if (found || found.error().code != ErrorCode::kNotFound) return {};
  }
  return Error{ErrorCode::kNotFound, data_directory.string() +
                                         " has no coordinator's data; start a coordinator there first: "
                                         "fedge-coordinator --data-dir " +
                                         data_directory.string()};
}

std::filesystem::path run_directory(const std::filesystem::path& data_directory, RunNumber run) {
  return data_directory / "runs" / std::to_string(run.value());
}

std::filesystem::path run_results(const std::filesystem::path& data_directory, RunNumber run) {
  return run_directory(data_directory, run) / "results";
}

}  // namespace fedge::server
