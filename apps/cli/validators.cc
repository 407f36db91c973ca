#include "apps/cli/validators.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/config/suggestion.h"
#include "protocol/session/endpoint.h"

namespace fedge::apps {
namespace {

std::string bound_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, value == std::floor(value) ? "%.0f" : "%g", value);
  return text;
}

CLI::Validator number_check(const std::string& allowed, double least, double most) {
  return {[=](std::string& text) {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            if (text.empty() || *end != '\0') return "'" + text + "' is not a number";
            if (value >= least && value <= most) return std::string();
            return "must be " + allowed + ", not " + text;
          },
          allowed};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

CLI::Validator between(double least, double most) {
  return number_check(bound_text(least) + " to " + bound_text(most), least, most);
}

CLI::Validator at_least(double least) {
  return number_check(bound_text(least) + " or more", least, HUGE_VAL);
}

CLI::Validator network_address() {
  return {[](std::string& text) {
            const auto address = protocol::parse_address(text);
            return address ? std::string() : address.error().message;
          },
          ""};
}

CLI::Validator assignment() {
  return {[](std::string& text) {
            const std::size_t equals = text.find('=');
            return equals != std::string::npos && equals > 0 ? std::string()
                                                             : "'" + text + "' is not of the form KEY=VALUE";
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& text) {
            for (const std::string& word : words)
              if (text == word) return std::string();
            return unknown_word("value", text, words);
          },
          "one of " + joined(words)};
}

std::string unknown_word(const std::string& what, const std::string& word,
                         const std::vector<std::string>& known) {
  constexpr std::size_t kMostListed = 16;
  const std::string complaint = "unknown " + what + " '" + word.substr(0, 80) + "'";
  if (const auto near = config::suggestion(word, known)) return complaint + "; did you mean '" + *near + "'?";
  return complaint +
         (known.empty() || known.size() > kMostListed ? "" : "; expected one of " + joined(known));
}

void add_format(CLI::App& command, std::string& format) {
  command.add_option("--format", format, "Output format")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(one_of({"table", "json"}));
}

void add_log_level(CLI::App& command, std::string& level) {
  command.add_option("--log-level", level, "Least severe level that is logged")
      ->capture_default_str()
      ->type_name("LEVEL")
      ->check(one_of({"trace", "debug", "info", "warning", "error", "off"}));
}

void add_log_format(CLI::App& command, std::string& format) {
  command.add_option("--log-format", format, "Form of the log's lines; json: one object for each event")
      ->capture_default_str()
      ->type_name("FORMAT")
      ->check(one_of({"text", "json"}));
}

void add_assignments(CLI::App& command, std::vector<std::string>& assignments) {
  command.add_option("--set", assignments, "Override a key of the run file, for example --set run.rounds=10")
      ->type_name("KEY=VALUE")
      ->check(assignment())
      ->take_all();
}

void add_data(CLI::App& command, std::vector<std::string>& data) {
  command
      .add_option(
          "--data", data,
          "Path of the run's data on this machine, by the name that the run file gives it (data.name); "
          "with data.partition.kind = \"own\" a directory with a file or directory for each client")
      ->type_name("NAME=PATH");
}

void add_data_directory(CLI::App& command, std::string& directory) {
  command.add_option("--data-dir", directory, "The coordinator's data directory")
      ->type_name("DIR")
      ->required()
      ->envname("FEDGE_DATA_DIR");
}

void add_run_file(CLI::App& command, std::string& file) {
  command.add_option("FILE", file, "Run file (TOML); 'fedge reference' lists its keys")->required();
}

void add_threads(CLI::App& command, std::size_t& threads, const std::string& what) {
  command.add_option("--threads", threads, what)
      ->default_str("number of processors")
      ->check(between(1, 1024));
}

}  // namespace fedge::apps
