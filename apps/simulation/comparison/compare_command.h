// `fedge-sim compare`: figures and tables of several runs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fedge::apps {

struct CompareOptions {
  std::vector<std::string> directories;
  std::string out = "fedge-compare";
  std::string title = "Comparison of runs";
  std::vector<std::string> columns = {"final", "best", "upload", "download", "seconds"};
  std::string baseline;
};

CLI::App* add_compare(CLI::App& app, CompareOptions& options);
// Returns the exit code.
int run_compare(const CompareOptions& options, const std::string& program);

}  // namespace fedge::apps
