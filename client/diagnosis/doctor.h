// Doctor: what may keep a client from taking part, checked one by one: its state directory, key, membership,
// clock and disk, then the way to each coordinator: name, TCP, TLS with the pinned key, Hello, round trip.
// Blocks, with a time limit for each step; `fedge-client doctor`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fedge::client {

enum class Health { kGood, kWarning, kBad, kSkipped };

struct Check {
  std::string name;  // "key file"
  Health health = Health::kGood;
  std::string detail;  // what was found, and what to do about it
};

struct DoctorOptions {
  std::filesystem::path state_directory;
  std::string software;
  std::size_t cache_bytes = std::size_t{1} << 30;
};

// In the order in which they were made; what cannot be checked because of an earlier failure is kSkipped.
std::vector<Check> examine(const DoctorOptions& options);
// Whether it can take part as it is.
bool healthy(const std::vector<Check>& checks);

// The parts, apart from each other.
void examine_files(const DoctorOptions& options, std::vector<Check>& checks);
void examine_network(const DoctorOptions& options, std::vector<Check>& checks);

}  // namespace fedge::client
