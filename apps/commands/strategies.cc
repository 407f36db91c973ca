#include "apps/commands/strategies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "aggregation/spec.h"
#include "apps/cli/help.h"
#include "apps/cli/validators.h"
#include "apps/commands/reference/key_reference.h"
#include "learn/data/kinds.h"
#include "learn/layers/kinds.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"
#include "protocol/codecs/compression_spec.h"
#include "run/run_config.h"

namespace fedge::apps {
namespace {

using aggregation::PartDoc;
using aggregation::Recipe;

// Whether the option applies to this kind. Where kinds share a section, its text begins with the kinds that
// have it: "top_k, rand_k: ...".
bool concerns(const config::KeyDoc& option, const std::string& kind) {
  const std::string owners = option.doc.substr(0, option.doc.find(": "));
  return owners.size() == option.doc.size() ||
         (", " + owners + ",").find(" " + kind + ",") != std::string::npos;
}

void append(std::vector<PartDoc>& parts, const std::string& section, std::span<const config::KindDoc> kinds) {
  for (const config::KindDoc& kind : kinds) {
    parts.push_back({section, kind.name, kind.paper, kind.summary, {}, {}});
    for (const config::KeyDoc& key : run::describe_run_config())
      if (key.path.starts_with(section + ".") && key.path != section + ".kind" && concerns(key, kind.name))
        parts.back().options.push_back(key);
  }
}

// The kinds of a section that also has keys for all kinds: only options of one kind are listed.
template <class Kind>
void append_with_own_options(std::vector<PartDoc>& parts, const std::string& section,
                             std::span<const Kind> kinds) {
  for (const Kind& kind : kinds) {
    parts.push_back({section, kind.name, kind.paper, kind.summary, {}, {}});
    for (const config::KeyDoc& key : run::describe_run_config())
      if (key.path.starts_with(section + ".") && key.doc.starts_with(std::string(kind.name) + ": "))
        parts.back().options.push_back(key);
  }
}

// The layers of model.kind = "layers"; their summaries name the papers.
std::span<const config::KindDoc> layer_docs() {
  static const std::vector<config::KindDoc> docs = [] {
    std::vector<config::KindDoc> all;
    for (const learn::LayerKind& kind : learn::layer_kinds()) all.push_back({kind.name, "", kind.summary});
    return all;
  }();
  return docs;
}

std::vector<PartDoc> all_parts() {
  std::vector<PartDoc> parts = aggregation::describe_parts();
  append_with_own_options(parts, "training.objective", learn::objective_kinds());
  append(parts, "compression", protocol::compression_kinds());
  append_with_own_options(parts, "model", learn::model_kinds());
  append_with_own_options(parts, "model.layer", layer_docs());
  append_with_own_options(parts, "data", learn::dataset_kinds());
  return parts;
}

// The key of the run file that names a part.
std::string key_of(const std::string& section) {
  return section == "data" ? "data.dataset" : section + ".kind";
}

// The parts that a recipe fixes; all others have defaults and may be changed.
std::string parts_of(const Recipe& recipe) {
  std::string text;
  for (const auto& [part, name] :
       std::vector<std::pair<const char*, std::string>>{{"planner ", recipe.planner},
                                                        {"aggregator ", recipe.aggregator},
                                                        {"server optimizer ", recipe.server_optimizer},
                                                        {"objective ", recipe.objective},
                                                        {"nesting ", recipe.nesting},
                                                        {"overlap ", recipe.overlap},
                                                        {"schedule ", recipe.schedule}})
    if (!name.empty()) text += (text.empty() ? "" : ", ") + std::string(part) + name;
  return text;
}

std::string short_name(const config::KeyDoc& option) {
  return option.path.substr(option.path.rfind('.') + 1);
}

std::string cited(const std::string& paper) { return paper.empty() ? "" : " [" + paper + "]"; }

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : aggregation::recipes()) names.emplace_back(recipe.name);
  for (const PartDoc& part : all_parts()) names.push_back(part.name);
  return names;
}

// A name and its description, wrapped for a terminal.
std::string entry(const std::string& indent, const std::string& name, const std::string& about) {
  constexpr std::size_t kColumn = 23;
  std::string line = indent + name;
  line.resize(std::max(kColumn, line.size() + 1), ' ');
  return line + wrapped(about, line.size(), kColumn, terminal_width(100));
}

}  // namespace

Result<std::string> strategies(const std::string& name) {
  const auto listed = [&](const std::string& candidate) { return name.empty() || name == candidate; };
  std::string text;
  for (const Recipe& recipe : aggregation::recipes()) {
    if (!listed(recipe.name)) continue;
    if (text.empty()) text += "strategy.kind, a combination of parts:\n";
    text += entry("  ", recipe.name, std::string(recipe.summary) + cited(recipe.paper));
    const std::string parts = parts_of(recipe);
    text += entry("  ", "", "= " + (parts.empty() ? "all parts at their defaults" : parts));
  }
  std::string section;
  for (const PartDoc& part : all_parts()) {
    if (!listed(part.name)) continue;
    if (std::exchange(section, part.section) != part.section)
      text += (text.empty() ? "" : "\n") + key_of(part.section) + ":\n";
    text += entry("  ", part.name, part.summary + cited(part.paper));
    if (!part.traits.empty()) text += entry("  ", "", "(" + part.traits + ")");
    for (const config::KeyDoc& option : part.options)
      text += entry("    ", short_name(option),
                    meaning_in_one_line(option) + " (default " + option.fallback + "; " + option.type + ")");
  }
  if (text.empty())
    return invalid(unknown_word("strategy or part", name, strategy_names()) +
                   " (without NAME the command lists all)");
  return text;
}

std::string strategies_page() {
  std::string text =
      "# Strategies and their parts\n\n"
      "Every value of the `kind` keys of a [run file](run-file.md), with its options. To choose a strategy, "
      "read\n[Choose a strategy](../guide/choose-strategy.md). The pages on "
      "[algorithms](../algorithms/README.md) explain how each works and where\nFedge differs from the paper. "
      "`fedge strategies --markdown` prints this "
      "page.\n\n"
      "## `strategy.kind`\n\n"
      "A strategy is a combination of the parts below. A run file may change every part that the strategy "
      "does not fix.\n\n"
      "| strategy | description | parts that it fixes | source |\n| --- | --- | --- | --- |\n";
  for (const Recipe& recipe : aggregation::recipes()) {
    const std::string parts = parts_of(recipe);
    text += "| `" + std::string(recipe.name) + "` | " + recipe.summary + " | " +
            (parts.empty() ? "none" : parts) + " | " + recipe.paper + " |\n";
  }
  std::string section;
  for (const PartDoc& part : all_parts()) {
    if (std::exchange(section, part.section) != part.section) text += "\n## `" + key_of(part.section) + "`\n";
    text += "\n**`" + part.name + "`**: " + part.summary + cited(part.paper);
    text += (part.traits.empty() ? "" : " (" + part.traits + ")") + std::string("\n");
    if (!part.options.empty()) text += "\n" + key_table(part.options, "option", short_name);
  }
  return text;
}

}  // namespace fedge::apps
