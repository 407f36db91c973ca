#include "core/platform/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/platform/files.h"

namespace fedge {
namespace {

constexpr useconds_t kPollMicroseconds = 10'000;

// Ends the child if the file cannot be opened.
void redirect_output(const char* path) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0 && ::dup2(file, STDERR_FILENO) >= 0) return;
  std::perror(path);
  ::_exit(127);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

bool ChildProcesses::Ended::failed() const { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

std::string ChildProcesses::Ended::describe() const {
  if (WIFSIGNALED(status)) return name + " was killed by signal " + std::to_string(WTERMSIG(status));
  return name + " failed with exit code " + std::to_string(WEXITSTATUS(status));
}

Result<void> ChildProcesses::start(const std::string& name, const std::vector<std::string>& arguments,
                                   const std::optional<std::filesystem::path>& output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // If this process was started with SIGCHLD ignored, the system would forget how its children end.
  ::signal(SIGCHLD, SIG_DFL);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("cannot start", arguments.front(), errno);
  if (pid == 0) {
    // The child ends with this process, even if that is killed. Ctrl-C reaches only this process, which
    // forwards it.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);
    if (output) redirect_output(output->c_str());
    ::execv(argv[0], argv.data());
    std::perror(argv[0]);
    ::_exit(127);
  }
  running_.emplace(pid, name);
  return {};
}

// It polls, because a blocking wait would miss a signal that comes just before it.
ChildProcesses::Ended ChildProcesses::wait(const std::function<bool()>& interrupted) {
  Ended ended;
  rusage usage{};
  pid_t pid = 0;
  while (pid == 0 && !(interrupted && interrupted())) {
    pid = ::wait4(-1, &ended.status, WNOHANG, &usage);
    if (pid == 0) ::usleep(kPollMicroseconds);
  }
  const auto node = running_.extract(pid);
  if (!node) return ended;
  ended.name = node.mapped();
  ended.peak_memory = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
  ended.processor_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return ended;
}

void ChildProcesses::reap() {
  for (pid_t pid = ::waitpid(-1, nullptr, WNOHANG); pid > 0; pid = ::waitpid(-1, nullptr, WNOHANG))
    running_.erase(pid);
}

void ChildProcesses::stop(std::chrono::milliseconds grace) {
  for (const auto& [pid, name] : running_) ::kill(pid, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + grace;
  while (!running_.empty() && std::chrono::steady_clock::now() < end) {
    reap();
    if (!running_.empty()) ::usleep(kPollMicroseconds);
  }
  for (const auto& [pid, name] : running_) ::kill(pid, SIGKILL);
  while (!running_.empty()) {
    const pid_t pid = ::waitpid(-1, nullptr, 0);
    if (pid < 0 && errno == ECHILD) break;
    running_.erase(pid);
  }
}

}  // namespace fedge
