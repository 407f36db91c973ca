// Doctor: checks one by one what may keep a client from taking part (`fedge-client doctor`). It checks
// state directory, key, membership, clock and disk, then the route to each coordinator: name, TCP, TLS with
// the pinned key, Hello, round trip. Blocks, with a time limit for each step.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fedge::client {

enum class Health { kGood, kWarning, kBad, kSkipped };

inline constexpr const char* kRejectedRun = "rejected run";  // name of a check

struct Check {
  std::string name;  // "key file"
  Health health = Health::kGood;
  std::string detail;  // what was found, and how to fix it
};

struct DoctorOptions {
  std::filesystem::path state_directory;
  std::string software;
  std::string program = "fedge-client";  // for commands in messages
  std::size_t cache_bytes = std::size_t{1} << 30;
};

// In the order of execution; kSkipped if an earlier failure makes a check impossible. Ends with a warning
// for each run that the last daemon rejected.
std::vector<Check> examine(const DoctorOptions& options);
// Whether no check failed.
bool healthy(const std::vector<Check>& checks);

// The two halves of examine().
void examine_files(const DoctorOptions& options, std::vector<Check>& checks);
void examine_network(const DoctorOptions& options, std::vector<Check>& checks);

}  // namespace fedge::client
