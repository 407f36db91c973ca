// `fedge tracks add`, `lift` and `ls`: the disagreements of a running run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct PolicyOptions {
  std::string data_directory;  // the coordinator's
  std::int64_t run = 0;        // its number; 0: the only one in progress
  std::size_t place = 0;       // lift: number in the list of ls, from 1
  // add: as in a policy file.
  std::string kind;
  std::vector<std::string> clients;
  std::vector<std::string> against;
  std::optional<std::uint32_t> from_round;
  std::optional<std::uint32_t> until_round;
  std::optional<double> withheld;
  bool deep = false;
};

// Each returns the text to print.
Result<std::string> add_disagreement(const PolicyOptions& options);
Result<std::string> lift_disagreement(const PolicyOptions& options);
Result<std::string> list_disagreements(const PolicyOptions& options);

}  // namespace fedge::apps
