#include "apps/common.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string_view>

#include "core/platform/files.h"
#include "core/platform/log_format.h"
#include "core/platform/repeated_events.h"
#include "learn/data/data_directories.h"

namespace fedge::apps {

std::string version() { return FEDGE_VERSION; }

std::string software(const std::string& program) { return program + " " + version(); }

const std::vector<std::string>& log_formats() {
  static const std::vector<std::string> formats = {"text", "json"};
  return formats;
}

namespace {

spdlog::level::level_enum level_of(Severity severity) {
  return severity == Severity::kDebug     ? spdlog::level::debug
         : severity == Severity::kInfo    ? spdlog::level::info
         : severity == Severity::kWarning ? spdlog::level::warn
                                          : spdlog::level::err;
}

struct EventLog {
  std::mutex mutex;
  bool json = false;
  RepeatedEvents events{[this](const Event& event, const std::string& line) {
    spdlog::log(level_of(event.severity), "{}",
                json ? json_line(event, std::chrono::system_clock::now()) : line);
  }};
};

EventLog& event_log() {
  static EventLog log;
  return log;
}

void flush_events() {
  const std::lock_guard lock(event_log().mutex);
  event_log().events.flush();
}

}  // namespace

void set_up_logging(const std::string& program, const std::string& level, const std::string& format) {
  auto logger = spdlog::stderr_color_mt(program);
  const bool json = format == "json";
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      json ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
  const std::lock_guard lock(event_log().mutex);
  event_log().json = json;
}

void log_event(const Event& event) {
  if (!spdlog::should_log(level_of(event.severity))) return;
  const std::lock_guard lock(event_log().mutex);
  event_log().events.add(event, Time(std::chrono::steady_clock::now().time_since_epoch()));
}

namespace {

// Whether a debugger is attached; it sees the memory in any case.
bool is_traced() {
  const auto status = read_file("/proc/self/status", 1 << 16);
  return status && status->find("\nTracerPid:\t0\n") == std::string::npos;
}

}  // namespace

void protect_memory() {
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) std::perror("cannot disable core files");
  if (!is_traced() && ::prctl(PR_SET_DUMPABLE, 0) != 0) std::perror("cannot protect this process's memory");
}

void protect_process() {
  protect_memory();
  ::umask(077);
}

void hide_argument(int argc, char** argv, const std::string& secret) {
  if (secret.empty()) return;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (const std::size_t at = argument.find(secret); at != std::string_view::npos)
      std::fill_n(argv[i] + at, secret.size(), 'x');
  }
}

int report_failure(const std::string& program, const Error& error) {
  flush_events();
  const std::size_t last = error.message.rfind('\n') + 1;  // 0 for a single line
  std::fprintf(stderr, "%s%s: %s\n", error.message.substr(0, last).c_str(), program.c_str(),
               error.message.c_str() + last);
  return kFailed;
}

int report_wrong_usage(const std::string& command, const std::string& message, const char* parts) {
  std::fprintf(stderr, "%s: %s\nRun '%s --help' for its %s.\n", command.c_str(), message.c_str(),
               command.c_str(), parts);
  return kWrongUsage;
}

int run_safely(const std::string& program, const std::function<int()>& command) {
  struct Flush {
    ~Flush() { flush_events(); }
  } flush;
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return report_failure(program, {ErrorCode::kResource, "out of memory"});
  } catch (const std::exception& error) {
    return report_failure(program, {ErrorCode::kUnavailable, error.what()});
  }
}

std::filesystem::path own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

namespace {

// Whether a file that is too large for a document is text at all: a model may have been given.
Result<void> check_beginning(const std::string& path) {
  constexpr std::uint64_t kLooked = 4096;
  const auto file = ReadOnlyFile::open(path);
  if (!file) return {};
  std::string beginning(std::min(file->size(), kLooked), ' ');
  if (!file->read(0, std::as_writable_bytes(std::span(beginning)))) return {};
  return config::check_is_text(beginning, path);
}

}  // namespace

Result<config::Document> load_document(const std::string& path, const std::vector<std::string>& assignments) {
  const auto text = read_file(path, config::kMaxDocumentBytes);
  if (!text) {
    FEDGE_TRY_VOID(check_beginning(path));
    return text.error();
  }
  FEDGE_TRY(document, config::parse_toml(*text, path));
  for (const std::string& assignment : assignments) FEDGE_TRY_VOID(config::set(document, assignment));
  return document;
}

Result<void> use_data(const std::vector<std::string>& paths, learn::DataSpec& data) {
  auto read = learn::read_data_directories(paths);
  if (!read) return read.error().with_prefix("--data: ");
  const auto chosen = learn::choose_directory_here(*read, data);
  return chosen ? chosen : chosen.error().with_prefix("--data: ");
}

Result<run::RunConfig> load_run(const std::string& path, const std::vector<std::string>& assignments) {
  FEDGE_TRY(document, load_document(path, assignments));
  FEDGE_TRY(run, run::read_run_config(document));
  print_notes(run);
  return run;
}

void print_notes(const run::RunConfig& run) {
  for (const std::string& note : run.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace fedge::apps
