// Common functions of the programs: version, logging, exit codes, reading a run file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/event.h"
#include "core/result.h"
#include "learn/spec.h"
#include "run/run_config.h"

namespace fedge::apps {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

std::string version();
// "fedge-client 0.1.0", sent to peers and printed by --version.
std::string software(const std::string& program);

// Logs go to standard error; level is one of trace, debug, info, warning, error, off; format one of
// log_formats(). Times are UTC.
void set_up_logging(const std::string& program, const std::string& level, const std::string& format = "text");
const std::vector<std::string>& log_formats();  // text, json
// Repeated equal warnings or errors become a few lines and a count (core/platform/repeated_events.h).
void log_event(const Event& event);

// Call at the start of a program that holds keys or tokens. The process then writes no core file, and other
// programs of the same user, such as a trainer, cannot read its memory.
void protect_memory();
// The same for a daemon; in addition, only its own user may read the files that it creates.
void protect_process();
// Overwrites a secret command-line argument, so that a list of processes does not show it.
void hide_argument(int argc, char** argv, const std::string& secret);

// Converts a limit in Mbit/s (10^6 bits).
constexpr std::uint64_t bytes_per_second(double mbit) { return static_cast<std::uint64_t>(mbit * 1e6 / 8); }

// Prints "PROGRAM: MESSAGE" to standard error and returns kFailed. A message of several lines comes from a
// file with several errors: its last line gets the program's name, the others begin with their position.
int report_failure(const std::string& program, const Error& error);

// Prints "COMMAND: MESSAGE" and where its help is; returns kWrongUsage. `parts` is what that help lists.
int report_wrong_usage(const std::string& command, const std::string& message, const char* parts = "options");

// Runs a program's command. An exception (no memory, no temporary directory) is reported as an error with
// kFailed instead of a core dump.
int run_safely(const std::string& program, const std::function<int()>& command);

// The path of the program that this process runs.
std::filesystem::path own_program();

// Reads a TOML file and applies --set assignments in order.
Result<config::Document> load_document(const std::string& path, const std::vector<std::string>& assignments);

// Reads a run file; for each key that --set made ineffective, prints a note to standard error.
Result<run::RunConfig> load_run(const std::string& path, const std::vector<std::string>& assignments);
void print_notes(const run::RunConfig& run);

// Uses these paths (--data NAME=PATH) for the run's data.
Result<void> use_data(const std::vector<std::string>& paths, learn::DataSpec& data);

}  // namespace fedge::apps
