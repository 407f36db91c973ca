// The coordinator program as a child process, started with a run file as a user does.
#pragma once

#include <string>
#include <vector>

#include "tests/support/logged_process.h"

namespace fedge::test {

class CoordinatorProcess : public LoggedProcess {
 public:
  struct Options {
    std::filesystem::path directory;  // data directory; the log is beside it
    std::filesystem::path results;
    std::filesystem::path run_file = FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml";
    std::vector<std::string> settings;  // added to the run file
    std::string listen = "127.0.0.1:0";
    std::vector<std::string> more = {};
    std::vector<std::string> program = {FEDGE_BINARY_DIR "/fedge-coordinator"};
  };
  // Returns once the coordinator listens; address() returns its address.
  explicit CoordinatorProcess(const Options& options)
      : LoggedProcess(command(options), options.directory.string() + ".log") {
    REQUIRE_MESSAGE(wait_for("coordinator.listening"), log());
    const auto text = read_file(options.directory / "address", 1000);
    REQUIRE(text);
    address_ = text->substr(0, text->find('\n'));
  }

  const std::string& address() const { return address_; }
  bool has_ended() const { return ends_within(0); }

 private:
  static std::vector<std::string> command(const Options& options) {
    std::vector<std::string> all = options.program;
    all.insert(all.end(), {"--data-dir", options.directory.string(), "--run", options.run_file.string(),
                           "--out", options.results.string(), "--listen", options.listen});
    for (const std::string& setting : options.settings) all.insert(all.end(), {"--set", setting});
    all.insert(all.end(), options.more.begin(), options.more.end());
    return all;
  }

  std::string address_;
};

}  // namespace fedge::test
