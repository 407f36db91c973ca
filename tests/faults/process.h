// A program as a process of its own, started as a user does, whose last lines can be read and which can be
// sent any signal.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

namespace fedge::test {

class Process {
 public:
  // The first argument is the program, found by PATH. Standard output goes nowhere, errors into lines().
  explicit Process(std::vector<std::string> arguments) {
    int errors[2];
    REQUIRE(::pipe2(errors, O_CLOEXEC) == 0);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
      ::dup2(errors[1], STDERR_FILENO);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(errors[1]);
    errors_ = errors[0];
  }
  ~Process() {
    if (!status_) {
      signal(SIGKILL);
      wait();
    }
    close_errors();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(process_, number); }
  // Reads its log until a line has this text; false if it ended before.
  bool read_until(const std::string& text) {
    while (log_.find(text) == std::string::npos) {
      char buffer[4096];
      const ssize_t got = ::read(errors_, buffer, sizeof buffer);
      if (got <= 0) return false;
      log_.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }
  // Nobody reads its log any more.
  void close_errors() {
    if (errors_ >= 0) ::close(errors_);
    errors_ = -1;
  }
  // Blocks until it has been stopped by a signal.
  void wait_until_stopped() const {
    int status = 0;
    REQUIRE(::waitpid(process_, &status, WUNTRACED) == process_);
    REQUIRE(WIFSTOPPED(status));
  }
  // Its exit code, 128 and more for a signal. Reads its log to the end.
  int wait() {
    if (status_) return *status_;
    if (errors_ >= 0) read_until("\x01");
    int status = 0;
    ::waitpid(process_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *status_;
  }
  const std::string& log() const { return log_; }

 private:
  pid_t process_ = -1;
  int errors_ = -1;
  std::string log_;
  std::optional<int> status_;
};

inline bool strace_works() {
  if (Process({"strace", "-o", "/dev/null", "true"}).wait() == 0) return true;
  MESSAGE("skipped: strace not found");
  return false;
}

}  // namespace fedge::test
