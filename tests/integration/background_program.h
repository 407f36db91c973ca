// One of Fedge's programs, running beside the test, its output in a file.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fedge::test {

class BackgroundProgram {
 public:
  // `arguments` begin with the program's name; what it prints goes to `output`.
  BackgroundProgram(std::vector<std::string> arguments, const std::filesystem::path& output) {
    arguments.front() = std::string(FEDGE_BINARY_DIR) + "/" + arguments.front();
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ != 0) return;
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~BackgroundProgram() {
    if (status_) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // "/proc/1234/cmdline".
  std::filesystem::path in_proc(const char* name) const {
    return "/proc/" + std::to_string(process_) + "/" + name;
  }
  // Its exit code, once it has ended by itself.
  int wait() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, 0) == process_) status_ = status;
    return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 128 + WTERMSIG(*status_);
  }

 private:
  pid_t process_ = -1;
  std::optional<int> status_;
};

// Looks again and again until something has happened; fails the test if it never does.
inline void wait_until(const std::function<bool()>& happened) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!happened()) {
    REQUIRE(std::chrono::steady_clock::now() < limit);
    ::usleep(10'000);
  }
}

}  // namespace fedge::test
