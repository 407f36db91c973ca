#include "server/live/fleet_file.h"

#include <cerrno>
#include <utility>

#include "core/platform/files.h"
#include "server/store/detail/database.h"

namespace fedge::server {
namespace {

// "FDGF"
constexpr DatabaseKind kFleetFile{"a file of clients' activity", 1178879814, 1};

std::filesystem::path fleet_path(const std::filesystem::path& data_directory) {
  return data_directory / "fleet.db";
}

Result<void> prepare_fleet(const Database& database) {
  FEDGE_TRY_VOID(database.execute("PRAGMA journal_mode = WAL"));
  FEDGE_TRY_VOID(database.execute("PRAGMA synchronous = NORMAL"));
  FEDGE_TRY(version, database.number("PRAGMA user_version"));
  FEDGE_TRY(tables, database.number("SELECT count(*) FROM sqlite_schema"));
  if (version > 0 || tables > 0) return database.check_kind(kFleetFile);
  FEDGE_TRY(transaction, Transaction::begin(database));
  FEDGE_TRY_VOID(
      database.execute("CREATE TABLE clients (client INTEGER PRIMARY KEY, activity TEXT NOT NULL)"));
  FEDGE_TRY_VOID(database.set_kind(kFleetFile));
  return transaction.commit();
}

}  // namespace

FleetFile::FleetFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
FleetFile::~FleetFile() = default;

Result<std::unique_ptr<FleetFile>> FleetFile::open(const std::filesystem::path& data_directory) {
  FEDGE_TRY(database, Database::open(fleet_path(data_directory)));
  FEDGE_TRY_VOID(prepare_fleet(*database));
  return std::unique_ptr<FleetFile>(new FleetFile(std::move(database)));
}

Result<std::unique_ptr<FleetFile>> FleetFile::replace(const std::filesystem::path& data_directory) {
  const auto file = fleet_path(data_directory);
  std::error_code error;
  std::filesystem::rename(file, file.string() + ".damaged", error);
  if (error) return system_error("cannot rename", file, error.value());
  for (const char* rest : {"-wal", "-shm"}) std::filesystem::remove(file.string() + rest, error);
  return open(data_directory);
}

Result<std::vector<ClientActivity>> FleetFile::read(const std::filesystem::path& data_directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(fleet_path(data_directory), ignored)) return std::vector<ClientActivity>();
  FEDGE_TRY(file, open(data_directory));
  return file->all();
}

Result<std::vector<ClientActivity>> FleetFile::all() const {
  std::vector<ClientActivity> clients;
  FEDGE_TRY(select, database_->prepare("SELECT client, activity FROM clients ORDER BY client"));
  for (;;) {
    FEDGE_TRY(found, select.step());
    if (!found) return clients;
    FEDGE_TRY(activity,
              parse_activity(ClientId(static_cast<std::uint32_t>(select.integer(0))), select.text(1)));
    clients.push_back(std::move(activity));
  }
}

Result<void> FleetFile::put(std::span<const ClientActivity> changed) {
  FEDGE_TRY_VOID(database_->check_in_place());
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(insert, database_->prepare("INSERT OR REPLACE INTO clients VALUES (?, ?)"));
  for (const ClientActivity& activity : changed)
    FEDGE_TRY_VOID(
        insert.bind(1, std::int64_t{activity.client.value()}).bind(2, encode_activity(activity)).run());
  return transaction.commit();
}

}  // namespace fedge::server
