// A child process in a group of its own, with pipes for its standard input, output and error. It gets no
// other descriptor of this process, only the variables of the environment that a program needs to run
// (never a token or a key), and dies with the thread that started it. Ended as a group. What it has started
// outside of the group becomes a child of this process and is ended with the last of the programs: a process
// that uses this has no other children. Linux. One thread uses it, the one that started it or one that
// outlives none of its calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace fedge::client {

// Into words at blanks, with '...', "..." and \ as a shell has them, and nothing else of a shell: no
// variables, no patterns. kInvalid: no word, or a quotation mark without its partner.
Result<std::vector<std::string>> split_command(const std::string& text);

// The variables of this process's environment that a child gets, as NAME=VALUE: where programs, libraries and
// the user's files are, language, time zone, and how many processors mathematics may use.
std::vector<std::string> child_environment();

struct ProcessOptions {
  std::vector<std::string> command;  // program and arguments; the program is looked for in PATH
  std::uint64_t memory_bytes = 0;    // of private memory it may have (RLIMIT_DATA); 0: no limit
  int nice = 0;                      // added to this process's, 0 to 19
};

class ChildProcess {
 public:
  // An error says why it could not be started.
  static Result<std::unique_ptr<ChildProcess>> start(const ProcessOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Not blocking. -1 once closed.
  int input() const { return input_; }
  int output() const { return output_; }
  int errors() const { return errors_; }
  void close_input();
  void close_errors();

  // Bytes written; kUnavailable if the process reads no more.
  Result<std::size_t> write(const void* bytes, std::size_t count);

  // Waits up to `patience` for it to end by itself.
  bool ends_within(Duration patience) const;
  // If it has not ended by itself: asks its group to end, waits up to `grace`, then kills what is left of the
  // group. Says how it ended: "ended with exit status 3", "was ended by signal 9 (Killed)". Once.
  std::string end(Duration grace);

 private:
  ChildProcess(int process, int input, int output, int errors)
      : process_(process), input_(input), output_(output), errors_(errors) {}

  int process_;  // its number, -1 once it is gone
  int input_;
  int output_;
  int errors_;
};

}  // namespace fedge::client
