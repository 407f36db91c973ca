// ChildProcess: a child process in its own group, with pipes for standard input, output and error. It gets
// no other descriptors, and only the environment variables that a program needs to run (never a token or a
// key). It dies with the thread that started it. It is ended as a group. Its descendants outside the group
// become children of this process and end with the last program, so this process must have no other
// children. Linux. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace fedge::client {

// Splits a command at blanks, with '...', "..." and \ as in a shell; no variables, no patterns. kInvalid:
// no word, or an unclosed quotation mark.
Result<std::vector<std::string>> split_command(const std::string& text);

// Whether a program of this name can be started. A name without a slash is looked for in PATH.
Result<void> check_program(const std::string& name);

// The environment that a child gets, as NAME=VALUE: paths of programs, libraries and the user's files,
// language, time zone, and thread limits of mathematical libraries.
std::vector<std::string> child_environment();

struct ProcessOptions {
  std::vector<std::string> command;  // program and arguments; searches PATH for the program
  std::uint64_t memory_bytes = 0;    // limit of private memory (RLIMIT_DATA); 0: none
  int nice = 0;                      // added to this process's nice value, 0 to 19
};

class ChildProcess {
 public:
  // The error says why the program could not be started.
  static Result<std::unique_ptr<ChildProcess>> start(const ProcessOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Non-blocking descriptors; -1 once closed.
  int input() const { return input_; }
  int output() const { return output_; }
  int errors() const { return errors_; }
  void close_input();
  void close_errors();

  // Returns the number of bytes written; kUnavailable if the process has closed its input.
  Result<std::size_t> write(const void* bytes, std::size_t count);

  // Waits up to `patience` for the process to exit by itself.
  bool ends_within(Duration patience) const;
  // Ends the process group: unless the process has exited, sends a request to end and waits up to `grace`;
  // then kills what is left. Returns how the process ended: "ended with exit status 3", "was ended by
  // signal 9 (Killed)". Later calls return "".
  std::string end(Duration grace);

 private:
  ChildProcess(int process, int input, int output, int errors)
      : process_(process), input_(input), output_(output), errors_(errors) {}

  int process_;  // process id, -1 after end()
  int input_;
  int output_;
  int errors_;
};

}  // namespace fedge::client
