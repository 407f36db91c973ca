// The coordinator program as a process of its own, which can be killed.
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

class CoordinatorProcess {
 public:
  // Returns once it listens; address() is where. Its output goes nowhere.
  explicit CoordinatorProcess(std::vector<std::string> arguments) {
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const int inherited = ::fcntl(ready[1], F_DUPFD, 3);  // without close-on-exec
    ::close(ready[1]);
    arguments.insert(arguments.begin(), std::string(FEDGE_BINARY_DIR) + "/fedge-coordinator");
    arguments.insert(arguments.end(), {"--ready-fd", std::to_string(inherited), "--log-level", "error"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(inherited);
    char byte = 0;
    while (::read(ready[0], &byte, 1) == 1 && byte != '\n') address_ += byte;
    ::close(ready[0]);
    REQUIRE_FALSE(address_.empty());
  }
  ~CoordinatorProcess() {
    if (!status_) kill();
  }
  CoordinatorProcess(const CoordinatorProcess&) = delete;
  CoordinatorProcess& operator=(const CoordinatorProcess&) = delete;

  const std::string& address() const { return address_; }
  // As the power goes: it has no time for a last word.
  void kill() {
    ::kill(process_, SIGKILL);
    int status = 0;
    ::waitpid(process_, &status, 0);
    status_ = status;
  }
  bool has_ended() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_.has_value();
  }
  // Of one that has ended by itself.
  int exit_code() const { return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_); }

 private:
  pid_t process_ = -1;
  std::string address_;
  std::optional<int> status_;
};

}  // namespace fedge::test
