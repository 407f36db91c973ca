#include "client/trainers/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/platform/files.h"

extern char** environ;

namespace fedge::client {
namespace {

constexpr std::array<std::string_view, 15> kVariables = {
    "PATH", "HOME",   "USER",        "LOGNAME",         "SHELL",          "LANG",       "LANGUAGE", "TZ",
    "TERM", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME"};
constexpr std::array<std::string_view, 9> kPrefixes = {"LC_",  "PYTHON", "OMP_",    "KMP_", "OPENBLAS_",
                                                       "MKL_", "CUDA_",  "NVIDIA_", "HIP_"};

void close_if_open(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

Error failed(const std::string& what, int error_number) {
  return {ErrorCode::kUnavailable, what + ": " + std::strerror(error_number)};
}

// A pipe whose ends are close-on-exec.
struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_if_open(read_end);
    close_if_open(write_end);
  }
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
};

// Data for the child between fork and exec, where only calls that take no memory and no lock are safe.
struct ChildPlan {
  pid_t parent;
  std::array<int, 3> standard;  // to become descriptors 0 to 2
  int report;                   // receives the error number if the program cannot be started
  std::uint64_t memory_bytes;
  int nice;
  long descriptors;  // upper limit of descriptor numbers
  char* const* arguments;
  char* const* environment;
};

// Closes all descriptors above 2 but the report, which exec closes; the parent then reads its end.
void close_all_but(const ChildPlan& plan) {
  const auto first = static_cast<unsigned>(plan.report) + 1;
  if (plan.report > 3) ::syscall(SYS_close_range, 3U, static_cast<unsigned>(plan.report) - 1, 0U);
  if (::syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  for (long fd = 3; fd < plan.descriptors; ++fd)
    if (fd != plan.report) ::close(static_cast<int>(fd));
}

bool limit(__rlimit_resource resource, std::uint64_t most) {
  const rlimit both{most, most};
  return ::setrlimit(resource, &both) == 0;
}

// Replaces the child's program; returns only on failure.
void become(const ChildPlan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);  // the parent died before prctl took effect
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // The pipes' ends are above 2, see start().
  for (int fd = 0; fd < 3; ++fd)
    if (::dup2(plan.standard[static_cast<std::size_t>(fd)], fd) < 0) return;
  close_all_but(plan);
  if (!limit(RLIMIT_CORE, 0)) return;
  if (plan.memory_bytes > 0 && !limit(RLIMIT_DATA, plan.memory_bytes)) return;
  if (plan.nice > 0) {
    errno = 0;
    if (::nice(plan.nice) == -1 && errno != 0) return;
  }
  ::execvpe(plan.arguments[0], plan.arguments, plan.environment);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// The error number from a child that could not start the program; 0 if it could.
int failure_of(int report) {
  int error_number = 0;
  ssize_t got = 0;
  do got = ::read(report, &error_number, sizeof error_number);
  while (got < 0 && errno == EINTR);
  return got == sizeof error_number ? error_number : 0;
}

void wait_for(pid_t process, int& status) {
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
}

// A process's parent and whether the process has ended, from /proc; nothing if it does not exist.
struct Parentage {
  pid_t parent = 0;
  bool ended = false;
};
std::optional<Parentage> parentage(const std::string& process) {
  const auto text = read_file("/proc/" + process + "/stat", 4096);
  if (!text) return std::nullopt;
  // "NUMBER (NAME) STATE PARENT ...", where NAME may contain any characters.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text->size()) return std::nullopt;
  return Parentage{static_cast<pid_t>(std::atoi(text->c_str() + name_end + 4)), (*text)[name_end + 2] == 'Z'};
}

// The programs that this process has started. Their orphaned descendants, in whatever group or session,
// become children of this process, which kills them when the last program ends.
class Programs {
 public:
  pid_t fork() {
    const std::lock_guard lock(mutex_);
    // Set at every start, because a fork of this process does not inherit it.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    reap_left_behind();
    const pid_t process = ::fork();
    if (process > 0) running_.insert(process);
    return process;
  }
  void ended(pid_t process) {
    const std::lock_guard lock(mutex_);
    running_.erase(process);
    if (running_.empty()) kill_left_behind();
  }

 private:
  // Calls visit(number, ended) for each child that is not one of the programs.
  template <class Visit>
  void for_each_left_behind(const Visit& visit) const {
    std::error_code error;
    std::filesystem::directory_iterator entry("/proc", error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const pid_t process = std::atoi(name.c_str());
      const auto found = parentage(name);
      if (found && found->parent == ::getpid() && !running_.contains(process)) visit(process, found->ended);
    }
  }
  void reap_left_behind() const {
    for_each_left_behind([](pid_t process, bool ended) {
      if (ended) ::waitpid(process, nullptr, WNOHANG);
    });
  }
  // Repeats, because a killed process's children become children of this process only then.
  void kill_left_behind() const {
    for (bool found = true; found;) {
      found = false;
      for_each_left_behind([&](pid_t process, bool) {
        found = true;
        ::kill(process, SIGKILL);
        int status = 0;
        wait_for(process, status);
      });
    }
  }

  std::mutex mutex_;
  std::set<pid_t> running_;
};

Programs& programs() {
  static Programs all;
  return all;
}

std::string how(int status) {
  if (WIFEXITED(status)) return "ended with exit status " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return "was ended by signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
}

// Moves a descriptor above 2, in case this process has closed one of 0 to 2.
bool lift(int& fd) {
  if (fd > 2) return true;
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (above < 0) return false;
  ::close(std::exchange(fd, above));
  return true;
}

// Prevents a write to a closed pipe from ending this program.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec at_once{0, 0};
    if (::sigismember(&before_, SIGPIPE) == 0)
      while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

Result<std::vector<std::string>> split_command(const std::string& text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      *word += text[++i];
    } else {
      *word += c;
    }
  }
  if (quote != 0) return invalid("the command has an unclosed " + std::string(1, quote) + " quote");
  if (word) words.push_back(*word);
  if (words.empty() || words.front().empty()) return invalid("the command names no program");
  return words;
}

Result<void> check_program(const std::string& name) {
  const auto starts = [](const std::filesystem::path& file) {
    std::error_code none;
    return std::filesystem::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (std::error_code none; !std::filesystem::exists(name, none)) return invalid(name + " does not exist");
    return starts(name) ? Result<void>() : invalid(name + " is not an executable file");
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (starts(std::filesystem::path(directory) / name)) return {};
  return invalid("no directory of PATH contains the program " + name);
}

std::vector<std::string> child_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool passed = std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end() ||
                        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                    [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (passed) result.emplace_back(text);
  }
  return result;
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ProcessOptions& options) {
  const std::string what = "cannot start the trainer program " + options.command.front();
  Pipe input, output, errors, report;
  for (Pipe* pipe : {&input, &output, &errors, &report})
    if (!pipe->open() || !lift(pipe->read_end) || !lift(pipe->write_end)) return failed(what, errno);
  for (const int fd : {input.write_end, output.read_end, errors.read_end})
    if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return failed(what, errno);
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> variables = child_environment();
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> variable_list = pointers(variables);
  const ChildPlan plan{.parent = ::getpid(),
                       .standard = {input.read_end, output.write_end, errors.write_end},
                       .report = report.write_end,
                       .memory_bytes = options.memory_bytes,
                       .nice = options.nice,
                       .descriptors = ::sysconf(_SC_OPEN_MAX),
                       .arguments = argument_list.data(),
                       .environment = variable_list.data()};
  const pid_t process = programs().fork();
  if (process < 0) return failed(what, errno);
  if (process == 0) {
    become(plan);
    const int error_number = errno;
    const ssize_t ignored = ::write(plan.report, &error_number, sizeof error_number);
    ::_exit(ignored < 0 ? 126 : 127);
  }
  close_if_open(report.write_end);
  if (const int error_number = failure_of(report.read_end); error_number != 0) {
    int status = 0;
    wait_for(process, status);
    programs().ended(process);
    return failed(what, error_number);
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(process, std::exchange(input.write_end, -1),
                                                        std::exchange(output.read_end, -1),
                                                        std::exchange(errors.read_end, -1)));
}

ChildProcess::~ChildProcess() {
  end(Duration::zero());
  close_input();
  close_if_open(output_);
  close_errors();
}

void ChildProcess::close_input() { close_if_open(input_); }
void ChildProcess::close_errors() { close_if_open(errors_); }

Result<std::size_t> ChildProcess::write(const void* bytes, std::size_t count) {
  const NoBrokenPipe guard;
  const ssize_t written = ::write(input_, bytes, count);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return failed("the trainer program stopped reading its standard input", errno);
}

bool ChildProcess::ends_within(Duration patience) const {
  constexpr int kLookEveryMs = 5;
  const auto limit = std::chrono::steady_clock::now() + patience;
  for (;;) {
    siginfo_t info{};
    // WNOWAIT leaves the process a zombie, so that no other process or group gets its number.
    const int looked = ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (looked == 0 && info.si_pid != 0) return true;
    if (std::chrono::steady_clock::now() >= limit) return false;
    ::poll(nullptr, 0, kLookEveryMs);
  }
}

std::string ChildProcess::end(Duration grace) {
  if (process_ < 0) return "";
  if (!ends_within(Duration::zero()) && grace > Duration::zero()) {
    ::kill(-process_, SIGTERM);
    ends_within(grace);
  }
  ::kill(-process_, SIGKILL);
  int status = 0;
  wait_for(process_, status);
  programs().ended(std::exchange(process_, -1));
  return how(status);
}

}  // namespace fedge::client
