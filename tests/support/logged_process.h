// A program that runs as a child process and ends with the test. Its output goes into a file, so that it
// never blocks on a reader. If another program wraps it (strace), both end.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "tests/support/text.h"

namespace fedge::test {

// Returns a pidfd of the process, -1 if it has ended.
inline int open_process(pid_t process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }

// Returns whether the process of this pidfd ends within this time.
inline bool ends_within(int pidfd, int milliseconds) {
  pollfd end{pidfd, POLLIN, 0};
  return ::poll(&end, 1, milliseconds) == 1;
}

// Returns whether the process ends whose id is in the file `number`. It is not a child of the test.
inline bool comes_to_its_end(const std::filesystem::path& number) {
  const auto text = read_file(number, 100);
  REQUIRE(text);
  const int process = open_process(std::stoi(*text));
  if (process < 0) return errno == ESRCH;
  const bool ends = ends_within(process, 20'000);
  ::close(process);
  return ends;
}

// Blocks until the file exists. Its directory must exist.
inline void wait_for_file(const std::filesystem::path& path) {
  const int changes = ::inotify_init1(IN_CLOEXEC);
  REQUIRE(::inotify_add_watch(changes, path.parent_path().c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
  char buffer[4096];
  while (!std::filesystem::exists(path)) REQUIRE(::read(changes, buffer, sizeof buffer) > 0);
  ::close(changes);
}

class LoggedProcess {
 public:
  // The first argument is the program, found by PATH. Standard output and errors are appended to the log.
  LoggedProcess(std::vector<std::string> arguments, std::filesystem::path log) : log_(std::move(log)) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int file = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    begin_ = std::filesystem::file_size(log_);
    changes_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    REQUIRE(::inotify_add_watch(changes_, log_.c_str(), IN_MODIFY) >= 0);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::setpgid(process_, process_);
    ::close(file);
    handle_ = open_process(process_);
    REQUIRE(handle_ >= 0);
  }
  ~LoggedProcess() {
    kill();
    ::close(handle_);
    ::close(changes_);
  }
  LoggedProcess(const LoggedProcess&) = delete;
  LoggedProcess& operator=(const LoggedProcess&) = delete;

  // Returns a path such as "/proc/1234/cmdline".
  std::filesystem::path in_proc(const std::string& name) const {
    return "/proc/" + std::to_string(process_) + "/" + name;
  }
  void signal(int number) const { ::kill(process_, number); }
  // Stops the process and blocks until it has stopped.
  void stop() const {
    signal(SIGSTOP);
    siginfo_t state{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(process_), &state, WSTOPPED | WEXITED | WNOWAIT) == 0);
    REQUIRE(state.si_code == CLD_STOPPED);
  }
  // Kills the process without a chance to clean up, as in a crash.
  void kill() {
    if (status_) return;
    ::kill(-process_, SIGKILL);
    (void)wait();
  }
  // Returns the exit code; 128 plus the signal's number if a signal ended the process.
  int wait() {
    if (status_) return *status_;
    int status = 0;
    REQUIRE(::waitpid(process_, &status, 0) == process_);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *status_;
  }
  // Returns whether the process ends by itself within this time.
  bool ends_within(int milliseconds) const { return status_ || test::ends_within(handle_, milliseconds); }
  // Blocks until the log contains this text; returns false if the process ends without it.
  bool wait_for(const std::string& text) const {
    return wait_until([&] { return contains(log(), text); });
  }
  // Blocks until the file exists; returns false if the process ends first. The directory must exist.
  bool wait_for_file(const std::filesystem::path& path) const {
    REQUIRE(::inotify_add_watch(changes_, path.parent_path().c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
    return wait_until([&] { return std::filesystem::exists(path); });
  }
  // Blocks until `happened` holds, which it checks whenever the log has grown; returns false if the process
  // ends first.
  bool wait_until(const std::function<bool()>& happened) const {
    while (!happened()) {
      pollfd both[] = {{handle_, POLLIN, 0}, {changes_, POLLIN, 0}};
      if (status_ || ::poll(both, 2, -1) < 0 || both[0].revents != 0) return happened();
      char buffer[4096];
      while (::read(changes_, buffer, sizeof buffer) > 0) {
      }
    }
    return true;
  }
  // Returns what the process has logged, without earlier content of the file.
  std::string log() const {
    const auto text = read_file(log_, 64 << 20);
    REQUIRE(text);
    return text->substr(begin_);
  }

 private:
  std::filesystem::path log_;
  std::size_t begin_ = 0;
  pid_t process_ = -1;
  int handle_ = -1;
  int changes_ = -1;
  std::optional<int> status_;
};

}  // namespace fedge::test
