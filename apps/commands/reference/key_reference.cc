#include "apps/commands/reference/key_reference.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/cli/help.h"
#include "core/config/suggestion.h"
#include "core/energy/power_file.h"
#include "learn/screening/stream_spec.h"
#include "run/run_config.h"
#include "server/coordinator_config.h"
#include "sim/spec.h"

namespace fedge::apps {
namespace {

using config::KeyDoc;

constexpr const char* kRunFilePage =
    "# Run file\n\n"
    "A run file describes a run in TOML. `fedge-sim run` and `fedge run submit` read the same file. To write "
    "your first\none, follow [the tutorial](../tutorial/simulate.md). [Strategies](strategies.md) lists the "
    "options of each `kind`.\n\n"
    "A meaning that starts with values and a colon (`dirichlet:`) describes a key that applies only to these "
    "values of a\nchoice in the same section, usually `kind`. `texts:` means all data sets that are texts. "
    "`fedge reference --markdown`\nprints this page.\n\n";
constexpr const char* kCoordinatorPage =
    "# Coordinator configuration\n\n"
    "`fedge-coordinator --config FILE` reads these keys from a TOML file. [Run a coordinator]"
    "(../operate/run.md) shows a\ncomplete file. `fedge reference coordinator --markdown` prints this "
    "page.\n\n";

constexpr const char* kScreeningPage =
    "# Screening file\n\n"
    "`fedge-client run --screening FILE` and `fedge data screen --screening FILE` read the rules from a TOML "
    "file, by which\nthey find events in [the stream of a sensor](../guide/streams.md). All keys may be "
    "omitted. `fedge reference screening\n--markdown` prints this page.\n\n";
constexpr const char* kPowerPage =
    "# Power file\n\n"
    "`fedge-client run --power FILE` reads from a TOML file how much energy the work of a device needs, for "
    "runs that\n[plan it](../algorithms/energy.md). `fedge reference power --markdown` prints this page.\n\n";

constexpr const char* kRunFile = "run-file";
constexpr const char* kCoordinator = "coordinator";
constexpr const char* kScreening = "screening";
constexpr const char* kPower = "power";
constexpr const char* kPages[] = {kRunFile, kCoordinator, kScreening, kPower};

std::vector<KeyDoc> keys_of_page(const std::string& page) {
  if (page == kCoordinator) return server::describe_coordinator_config();
  if (page == kScreening) return learn::describe_stream_file();
  if (page == kPower) return describe_power_file();
  auto keys = run::describe_run_config();
  for (auto& key : sim::describe_simulation()) keys.push_back(std::move(key));
  return keys;
}

bool is_page(const std::string& name) { return std::ranges::find(kPages, name) != std::end(kPages); }

const char* beginning_of(const std::string& page) {
  return page == kRunFile       ? kRunFilePage
         : page == kCoordinator ? kCoordinatorPage
         : page == kScreening   ? kScreeningPage
         : page == kPower       ? kPowerPage
                                : "";
}

// The keys of a page, or a key alone, or those of a section.
std::vector<KeyDoc> keys_of(const std::string& name) {
  if (is_page(name)) return keys_of_page(name);
  std::vector<KeyDoc> found;
  for (const char* page : kPages)
    for (KeyDoc& key : keys_of_page(page))
      if (key.path == name || key.path.starts_with(name + ".")) found.push_back(std::move(key));
  return found;
}

// The pages, and all keys and sections.
std::vector<std::string> all_names() {
  std::vector<std::string> names(std::begin(kPages), std::end(kPages));
  for (const char* page : kPages)
    for (const KeyDoc& key : keys_of_page(page))
      for (std::size_t end = 0; end != std::string::npos;) {
        end = key.path.find('.', end + 1);
        names.push_back(key.path.substr(0, end));
      }
  return names;
}

// The names with the same last part, in the same section if the name has one: "run.rounds" for "rounds".
std::vector<std::string> with_same_end(const std::string& name, const std::vector<std::string>& names) {
  const std::size_t dot = name.find('.');
  const std::string section = dot == std::string::npos ? "" : name.substr(0, dot + 1);
  std::vector<std::string> found = config::keys_named(name.substr(name.rfind('.') + 1), names);
  std::erase_if(found, [&](const std::string& known) { return !known.starts_with(section); });
  return found;
}

// The end of an error message about an unknown name.
std::string meant_instead(const std::vector<std::string>& near) {
  if (near.empty() || near.size() > config::kMostSuggested) return "list all with: fedge reference";
  std::string list;
  for (const std::string& name : near) list += (list.empty() ? "'" : ", '") + name + "'";
  return std::string("did you mean ") + (near.size() > 1 ? "one of " : "") + list + "?";
}

// Splits a meaning into its first line and a line for each value: "flat: the norm is reduced ...".
std::vector<std::string> lines_of(const KeyDoc& key) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= key.doc.size();) {
    const std::size_t end = std::min(key.doc.find('\n', begin), key.doc.size());
    lines.push_back(key.doc.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string value_item(const std::string& line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string::npos) return "- " + line + "\n";
  return "- `" + line.substr(0, colon) + "`" + line.substr(colon) + "\n";
}

std::string path_of(const KeyDoc& key) { return key.path; }

}  // namespace

std::string key_table(std::span<const KeyDoc> keys, const std::string& first_column,
                      std::string (*name)(const KeyDoc& key)) {
  std::string table = "| " + first_column + " | default | type | meaning |\n| --- | --- | --- | --- |\n";
  std::string values;
  for (const KeyDoc& key : keys) {
    const std::vector<std::string> lines = lines_of(key);
    const std::string fallback = key.fallback == "required" ? key.fallback : "`" + key.fallback + "`";
    table += "| `" + name(key) + "` | " + fallback + " | " + key.type + " | " + lines.front() + " |\n";
    if (lines.size() == 1) continue;
    values += "\nValues of `" + name(key) + "`:\n\n";
    for (std::size_t i = 1; i < lines.size(); ++i) values += value_item(lines[i]);
  }
  return table + values;
}

std::string meaning_in_one_line(const KeyDoc& key) {
  std::string text = key.doc;
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string unknown_reference(const std::string& name) {
  if (!keys_of(name).empty()) return "";
  const std::vector<std::string> names = all_names();
  std::vector<std::string> near = with_same_end(name, names);
  if (const auto close = config::suggestion(name, names); near.empty() && close) near.push_back(*close);
  return "unknown key or section '" + name.substr(0, 80) + "'; " + meant_instead(near);
}

std::string key_reference(const std::string& name, bool markdown) {
  const std::vector<KeyDoc> keys = keys_of(name);
  if (markdown) return beginning_of(name) + key_table(keys, "key", path_of);
  const std::size_t width = terminal_width(100);
  const auto indented = [&](const std::string& line) { return "    " + wrapped(line, 4, 4, width); };
  std::string text;
  for (const KeyDoc& key : keys) {
    text += key.path + "\n";
    for (const std::string& line : lines_of(key)) text += indented(line);
    text += indented("Default: " + key.fallback + "; " + key.type + ".");
  }
  return text;
}

}  // namespace fedge::apps
