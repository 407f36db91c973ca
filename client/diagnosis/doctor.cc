#include "client/diagnosis/doctor.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "client/diagnosis/status_file.h"
#include "client/membership.h"
#include "client/task_files.h"

namespace fedge::client {
namespace {

constexpr std::uint64_t kLeastSpace = std::uint64_t{64} << 20;
constexpr std::time_t kYear2024 = 1'704'067'200;

std::string megabytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MB"; }

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

std::string calendar(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

Check state_directory(const DoctorOptions& options) {
  const std::filesystem::path& directory = options.state_directory;
  Check check{.name = "state directory", .health = Health::kBad, .detail = ""};
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    check.detail = directory.string() + ": " + std::strerror(errno) +
                   "; join a coordinator first: " + client_command(directory, options.program) +
                   " join TOKEN";
  } else if (!S_ISDIR(info.st_mode)) {
    check.detail = directory.string() + " is not a directory";
  } else if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    check.detail =
        directory.string() + " is not readable and writable for this user: " + std::strerror(errno);
  } else if ((info.st_mode & 077) != 0) {
    check.detail = directory.string() + " has mode " + octal(info.st_mode) +
                   ", so other users can access it; run: chmod 700 " + directory.string();
  } else {
    check.health = Health::kGood;
    check.detail = directory.string() + ", writable, accessible to this user only";
  }
  return check;
}

Check key_file(const std::filesystem::path& directory) {
  const auto file = directory / "node.key";
  Check check{.name = "key", .health = Health::kBad, .detail = ""};
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) {
    check.detail = file.string() + ": " + std::strerror(errno);
    return check;
  }
  const auto key = open_node_key(directory);
  if (!key) {
    check.detail = key.error().message;
  } else {
    check.health = Health::kGood;
    check.detail = to_hex(key->public_key()).substr(0, 16) + "..., mode " + octal(info.st_mode);
  }
  return check;
}

Check membership(const DoctorOptions& options) {
  const auto read = read_membership(options.state_directory, options.program);
  if (!read) return {"membership", Health::kBad, read.error().message};
  std::string detail = "client " + std::to_string(read->client.value()) + " of";
  for (const auto& address : read->coordinators) detail += " " + protocol::to_string(address);
  return {"membership", Health::kGood, detail};
}

// Without a battery a device's clock starts in 1970, or at the date of its system image.
Check clock_of(const std::filesystem::path& directory) {
  const std::time_t now = std::time(nullptr);
  struct stat info {};
  const bool has_key = ::stat((directory / "node.key").c_str(), &info) == 0;
  if (now < kYear2024)
    return {"clock", Health::kBad, calendar(now) + " is too far in the past; set the clock or enable NTP"};
  if (has_key && now < info.st_mtim.tv_sec)
    return {"clock", Health::kBad,
            calendar(now) + " is earlier than the creation of this client's key, " +
                calendar(info.st_mtim.tv_sec) + "; set the clock"};
  return {"clock", Health::kGood, calendar(now)};
}

Check disk(const DoctorOptions& options) {
  struct statvfs info {};
  if (::statvfs(options.state_directory.c_str(), &info) != 0)
    return {"disk", Health::kBad, options.state_directory.string() + ": " + std::strerror(errno)};
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  const std::uint64_t used = chunk_cache_use(options.state_directory);
  const std::string found =
      megabytes(free) + " free, cache uses " + megabytes(used) + " of " + megabytes(options.cache_bytes);
  if (free < kLeastSpace) return {"disk", Health::kBad, found + "; free some disk space"};
  if (free + used < options.cache_bytes)
    return {"disk", Health::kWarning,
            found + "; the cache may fill the disk; start the client with --cache-mb " +
                std::to_string((free + used) / 2 >> 20)};
  return {"disk", Health::kGood, found};
}

}  // namespace

void examine_files(const DoctorOptions& options, std::vector<Check>& checks) {
  checks.push_back(state_directory(options));
  checks.push_back(key_file(options.state_directory));
  checks.push_back(membership(options));
  checks.push_back(clock_of(options.state_directory));
  checks.push_back(disk(options));
}

std::vector<Check> examine(const DoctorOptions& options) {
  std::vector<Check> checks;
  examine_files(options, checks);
  examine_network(options, checks);
  if (const auto status = read_status(options.state_directory))
    for (const RunActivity& run : status->activity.runs)
      if (!run.reason.empty())
        checks.push_back({kRejectedRun, Health::kWarning, run.name + ": " + run.reason});
  return checks;
}

bool healthy(const std::vector<Check>& checks) {
  return std::ranges::none_of(checks, [](const Check& check) { return check.health == Health::kBad; });
}

}  // namespace fedge::client
