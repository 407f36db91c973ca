// ChildProcesses: programs that this process has started, and waits for. They are ended with it, even if it
// is killed. Used by one thread; a process has one such object at a time, because waiting takes any child.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge {

class ChildProcesses {
 public:
  struct Ended {
    std::string name;               // empty: waiting was interrupted, or there is no process
    int status = 0;                 // as wait() returns it
    std::uint64_t peak_memory = 0;  // bytes
    double processor_seconds = 0;
    bool failed() const;
    // "NAME failed with exit code 1", "NAME was killed by signal 9".
    std::string describe() const;
  };

  ChildProcesses() = default;
  // Ends those that still run, within kGrace.
  ~ChildProcesses() { stop(kGrace); }
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  // Starts a program by its path. It does not receive the terminal's Ctrl-C. `name` must not be in use.
  // `output`, if given, is the file that gets its standard output and error.
  Result<void> start(const std::string& name, const std::vector<std::string>& arguments,
                     const std::optional<std::filesystem::path>& output = {});
  std::size_t running() const { return running_.size(); }
  // Waits for one process to end, or for `interrupted`.
  Ended wait(const std::function<bool()>& interrupted);
  // Asks all to end (SIGTERM), and kills those that do not end within this time.
  void stop(std::chrono::milliseconds grace);

  static constexpr std::chrono::milliseconds kGrace{5000};

 private:
  void reap();

  std::map<int, std::string> running_;  // by process id
};

}  // namespace fedge
