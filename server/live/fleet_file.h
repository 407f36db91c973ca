// FleetFile keeps the activity of clients in fleet.db. It is written every few seconds, and a crash loses
// what came since: it informs operators. Only a rotation of the key depends on it, and is refused for what
// was lost. One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "server/live/client_activity.h"

namespace fedge::server {

class Database;

class FleetFile {
 public:
  // Creates the file if it is missing. kCorrupt: it is damaged, or another kind of file.
  static Result<std::unique_ptr<FleetFile>> open(const std::filesystem::path& data_directory);
  // Sets a damaged file aside, as fleet.db.damaged, and creates an empty one.
  static Result<std::unique_ptr<FleetFile>> replace(const std::filesystem::path& data_directory);
  // For reading, while no coordinator runs; no clients if there is no file.
  static Result<std::vector<ClientActivity>> read(const std::filesystem::path& data_directory);
  ~FleetFile();
  FleetFile(const FleetFile&) = delete;
  FleetFile& operator=(const FleetFile&) = delete;

  Result<std::vector<ClientActivity>> all() const;
  Result<void> put(std::span<const ClientActivity> changed);

 private:
  explicit FleetFile(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace fedge::server
