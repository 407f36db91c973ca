#include "apps/common.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>

#include "core/platform/files.h"

namespace fedge::apps {

std::string version() { return FEDGE_VERSION; }

std::string software(const std::string& program) { return program + " " + version(); }

void set_up_logging(const std::string& program, const std::string& level) {
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void log_event(const Event& event) {
  const auto level = event.severity == Severity::kDebug     ? spdlog::level::debug
                     : event.severity == Severity::kInfo    ? spdlog::level::info
                     : event.severity == Severity::kWarning ? spdlog::level::warn
                                                            : spdlog::level::err;
  if (spdlog::should_log(level)) spdlog::log(level, "{}", to_string(event));
}

namespace {

// A debugger that has started this process sees everything anyway.
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
  std::fprintf(stderr, "%s: %s\n", program.c_str(), error.message.c_str());
  return kFailed;
}

int run_safely(const std::string& program, const std::function<int()>& command) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return report_failure(program, {ErrorCode::kResource, "out of memory"});
  } catch (const std::exception& error) {
    return report_failure(program, {ErrorCode::kUnavailable, error.what()});
  }
}

Result<config::Document> load_document(const std::string& path, const std::vector<std::string>& assignments) {
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  FEDGE_TRY(document, config::parse_toml(text, path));
  for (const std::string& assignment : assignments) FEDGE_TRY_VOID(config::set(document, assignment));
  return document;
}

}  // namespace fedge::apps
