#include "apps/cli/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace fedge::apps {
namespace {

using Options = std::vector<const CLI::Option*>;

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

bool repeats(const CLI::Option& option) {
  return option.get_items_expected_max() > std::max(1, option.get_items_expected_min()) &&
         option.get_delimiter() == '\0';
}

// Stands for a space at which a line must not break.
constexpr char kGlue = '\x01';

// A description may end with the default in words: "Last round; default: no end".
constexpr std::string_view kDefaultMark = "; default: ";

std::string description_of(const CLI::Option& option) {
  const std::string text = option.get_description();
  return text.substr(0, text.find(kDefaultMark));
}

std::string default_of(const CLI::Option& option) {
  const std::string description = option.get_description();
  if (const std::size_t at = description.find(kDefaultMark); at != std::string::npos)
    return description.substr(at + kDefaultMark.size());
  std::string text = option.get_default_str();
  const bool list = option.get_items_expected_max() > 1 && text.starts_with("[") && text.ends_with("]");
  return list ? text.substr(1, text.size() - 2) : text;
}

// Conditions on an option, besides its description and its default.
std::vector<std::string> conditions_of(const CLI::Option& option) {
  std::vector<std::string> facts = checks_of(option);
  if (option.get_required())
    facts.insert(facts.begin(), option.get_envname().empty()
                                    ? "required"
                                    : "required unless " + option.get_envname() + " is set");
  if (!option.get_positional() && repeats(option)) facts.emplace_back("may be repeated");
  for (const CLI::Option* needed : option.get_needs()) facts.push_back("needs " + needed->get_name());
  std::vector<std::string> others;  // sorted: the set's order is that of addresses
  for (const CLI::Option* other : option.get_excludes()) others.push_back(other->get_name());
  std::ranges::sort(others);
  if (!others.empty()) facts.push_back("cannot be combined with " + joined(others, " or "));
  return facts;
}

std::string meaning_of(const CLI::Option& option, bool with_default) {
  constexpr std::size_t kShort = 24;
  std::vector<std::string> facts = conditions_of(option);
  if (with_default && !default_of(option).empty()) facts.push_back("default: " + default_of(option));
  for (std::string& fact : facts)
    if (with_default && fact.size() <= kShort) std::ranges::replace(fact, ' ', kGlue);
  return description_of(option) + (facts.empty() ? "" : " (" + joined(facts, "; ") + ")");
}

// Breaks a long command into several shell lines, each before an option.
std::string wrapped_command(const std::string& command, std::size_t width) {
  std::string rest = command;
  std::string out;
  std::string indent = "  ";
  while (indent.size() + rest.size() > width) {
    std::size_t at = rest.rfind(" -", width - indent.size() - 2);
    if (at == std::string::npos) at = rest.find(" -");
    if (at == std::string::npos) break;
    out += indent + rest.substr(0, at) + " \\\n";
    rest = rest.substr(at + 1);
    indent = "      ";
  }
  return out + indent + rest + "\n";
}

using Rows = std::vector<std::pair<std::string, std::string>>;

std::size_t column_of(const std::vector<Rows>& tables) {
  constexpr std::size_t kWidest = 26;
  std::size_t widest = 0;
  for (const Rows& rows : tables)
    for (const auto& [name, text] : rows)
      if (name.size() <= kWidest) widest = std::max(widest, name.size());
  return widest + 4;
}

std::string table(const std::string& title, const Rows& rows, std::size_t column, std::size_t width) {
  std::string out = "\n" + title + ":\n";
  for (const auto& [name, text] : rows) {
    std::string line = "  " + name;
    if (line.size() + 2 > column) {
      out += line + "\n";
      line.clear();
    }
    line.resize(column, ' ');
    out += line + wrapped(text, column, column, width);
  }
  return out;
}

Options arguments_in(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

Options options_in(const CLI::App& command, const std::string& group) {
  Options found = command.get_options(
      [&](const CLI::Option* option) { return option->nonpositional() && option->get_group() == group; });
  // Moves --help and --version, which are added first, to the end.
  std::stable_partition(found.begin(), found.end(), [&](const CLI::Option* option) {
    return option != command.get_help_ptr() && option->get_name() != "--version";
  });
  return found;
}

Rows rows_of(const Options& options) {
  Rows rows;
  for (const CLI::Option* option : options) rows.emplace_back(usage_of(*option), meaning_of(*option, true));
  return rows;
}

struct Section {
  std::string title;
  Options options;
};

// Arguments, then each group of options, then the program's options that may follow the command.
std::vector<Section> sections_of(const CLI::App& command) {
  std::vector<Section> sections;
  const auto add = [&](const std::string& title, Options options) {
    if (!options.empty()) sections.push_back({title, std::move(options)});
  };
  add("Arguments", arguments_in(command));
  for (const std::string& group : command.get_groups())
    if (!group.empty()) add(group, options_in(command, group));
  if (command.get_fallthrough()) {
    const CLI::App* program = command.get_parent();
    Options common = options_in(*program, "Options");
    std::erase_if(common, [&](const CLI::Option* option) {
      return option == program->get_help_ptr() || option->get_name() == "--version";
    });
    add("Options of all commands", std::move(common));
  }
  return sections;
}

// A program's commands in groups, or a command's subcommands under "Commands".
std::vector<std::pair<std::string, Rows>> parts_of(const CLI::App& command, const ProgramDoc& doc) {
  std::vector<std::pair<std::string, Rows>> groups;
  for (const CommandDoc& part : doc.commands)
    for (const CLI::App* known : commands_of(command)) {
      if (find_doc(*known, doc) != &part) continue;
      const std::string title = part.group.empty() ? "Commands" : part.group;
      if (groups.empty() || groups.back().first != title) groups.emplace_back(title, Rows());
      groups.back().second.emplace_back(known->get_name(), part.summary);
    }
  return groups;
}

std::string usage_line(const CLI::App& command) {
  std::string text = full_name(command) + " [OPTIONS]";
  if (!commands_of(command).empty()) text += " COMMAND";
  for (const CLI::Option* argument : arguments_in(command)) {
    const std::string name = usage_of(*argument);
    text += " " + (argument->get_required() ? name : "[" + name + "]") + (repeats(*argument) ? " ..." : "");
  }
  return text;
}

std::string comment(const std::string& text, std::size_t width) {
  std::string lines = "  # " + wrapped(text, 4, 4, width);
  for (std::size_t at = lines.find("\n    "); at != std::string::npos; at = lines.find("\n    ", at + 1))
    lines[at + 3] = '#';
  return lines;
}

std::string examples_text(const CommandDoc& doc, std::size_t width) {
  if (doc.examples.empty()) return "";
  std::string out = "\nExamples:\n";
  for (const Example& example : doc.examples)
    out += comment(example.purpose, width) + wrapped_command(example.command, width);
  return out;
}

std::string in_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

std::string markdown_table(const CLI::App& command) {
  std::string out;
  for (const Section& section : sections_of(command)) {
    std::string rows;
    for (const CLI::Option* option : section.options) {
      if (option == command.get_help_ptr() || option->get_name() == "--version") continue;
      const std::string fallback = default_of(*option);
      rows += "| `" + in_cell(usage_of(*option)) + "` | " +
              (fallback.find(' ') != std::string::npos || fallback.empty() ? in_cell(fallback)
                                                                           : "`" + in_cell(fallback) + "`") +
              " | " + in_cell(meaning_of(*option, false)) + " |\n";
    }
    if (rows.empty() || section.title == "Options of all commands") continue;
    const bool grouped = section.title != "Options" && section.title != "Arguments";
    if (grouped) out += "\n" + section.title + ":\n";
    if (grouped || out.empty() || !out.ends_with("|\n"))
      out += "\n| option | default | meaning |\n| --- | --- | --- |\n";
    out += rows;
  }
  return out;
}

std::string markdown_of(const CLI::App& command, const ProgramDoc& doc) {
  const CommandDoc& entry = *find_doc(command, doc);
  const std::string mark = command.get_parent() == nullptr ? "## " : "### ";
  std::string out = "\n" + mark + "`" + full_name(command) + "`\n\n" + entry.summary + ".\n\n`" +
                    usage_line(command) + "`\n";
  out += markdown_table(command);
  for (const auto& [title, rows] : parts_of(command, doc)) {
    out += "\n| " + (title == "Commands" ? "command" : title) + " | |\n| --- | --- |\n";
    for (const auto& [name, summary] : rows) out += "| `" + name + "` | " + in_cell(summary) + " |\n";
  }
  for (const std::string& note : entry.notes) out += "\n" + wrapped(note, 0, 0, 120);
  for (const NamedList& list : entry.lists) {
    out += "\n| " + list.title + " | |\n| --- | --- |\n";
    for (const auto& [name, text] : list.entries) out += "| `" + name + "` | " + in_cell(text) + " |\n";
  }
  if (entry.examples.empty()) return out;
  out += "\n```sh example\n";
  for (const Example& example : entry.examples) out += "# " + example.purpose + "\n" + example.command + "\n";
  return out + "```\n";
}

std::string markdown_of_all(const CLI::App& command, const ProgramDoc& doc) {
  std::string out = markdown_of(command, doc);
  for (const CommandDoc& part : doc.commands)
    for (const CLI::App* known : commands_of(command))
      if (find_doc(*known, doc) == &part) out += markdown_of_all(*known, doc);
  return out;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t begin, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string out;
  std::size_t column = begin;
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
  }
  std::ranges::replace(out, kGlue, ' ');
  return out + "\n";
}

std::vector<std::string> checks_of(const CLI::Option& option) {
  std::vector<std::string> found;
  for (int i = 0;; ++i) {
    try {
      const CLI::Validator* check = const_cast<CLI::Option&>(option).get_validator(i);  // NOLINT
      if (const std::string text = check->get_description(); !text.empty()) found.push_back(text);
    } catch (const CLI::OptionNotFound&) {
      return found;
    }
  }
}

std::vector<std::pair<std::string, std::string>> option_rows(const CLI::App& command) {
  Rows rows;
  for (const Section& section : sections_of(command))
    for (auto& row : rows_of(section.options)) {
      std::ranges::replace(row.second, kGlue, ' ');
      rows.push_back(std::move(row));
    }
  return rows;
}

std::string full_name(const CLI::App& command) {
  const std::string own = command.get_name();
  return command.get_parent() == nullptr ? own : full_name(*command.get_parent()) + " " + own;
}

std::string placeholder_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  std::string text = option.get_type_name();
  std::size_t checks = 0;  // get_type_name() ends with ":CHECK" for each
  for (const std::string& check : checks_of(option)) checks += check.size() + 1;
  text.resize(text.size() - std::min(checks, text.size()));
  return text == "UINT" || text == "INT" || text == "FLOAT" ? "NUMBER" : text;
}

std::string usage_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  std::string text = placeholder_of(option);
  if (const int values = option.get_items_expected_min(); values > 1)
    for (int i = 1; i < values; ++i) text += " " + placeholder_of(option);
  return text.empty() ? names : names + " " + text;
}

std::vector<const CLI::App*> commands_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* part) { return !part->get_name().empty(); });
}

std::string program_name(const char* const* argv, const std::string& otherwise) {
  const std::string path = argv[0] == nullptr ? "" : argv[0];
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.empty() ? otherwise : name;
}

ProgramDoc renamed(ProgramDoc doc, const std::string& program) {
  for (CommandDoc& command : doc.commands)
    for (Example& example : command.examples)
      if (example.command.starts_with(doc.program + " "))
        example.command.replace(0, doc.program.size(), program);
  doc.program = program;
  return doc;
}

const CommandDoc* find_doc(const CLI::App& command, const ProgramDoc& doc) {
  const std::string name = full_name(command);
  const std::string own = name == doc.program ? "" : name.substr(doc.program.size() + 1);
  const auto found = std::ranges::find(doc.commands, own, &CommandDoc::command);
  return found == doc.commands.end() ? nullptr : &*found;
}

std::string help_text(const CLI::App& command, const ProgramDoc& doc, std::size_t width) {
  const CommandDoc& entry = *find_doc(command, doc);
  std::string out = wrapped(entry.summary + ".", 0, 0, width);
  out += "\nUsage: " + wrapped(usage_line(command), 7, 11, width);
  const auto sections = sections_of(command);
  const auto parts = parts_of(command, doc);
  std::vector<Rows> tables;
  for (const auto& [title, rows] : parts) tables.push_back(rows);
  for (const Section& section : sections) tables.push_back(rows_of(section.options));
  const std::size_t column = column_of(tables);
  for (const auto& [title, rows] : parts) out += table(title, rows, column, width);
  for (const Section& section : sections)
    out += table(section.title, rows_of(section.options), column, width);
  for (const std::string& note : entry.notes) out += "\n" + wrapped(note, 0, 0, width);
  for (const NamedList& list : entry.lists)
    out += table(list.title, list.entries, column_of({list.entries}), width);
  out += examples_text(entry, width);
  if (!parts.empty())
    out += "\n" +
           wrapped("Run '" + full_name(command) + " COMMAND --help' for a command's options and examples.", 0,
                   0, width);
  return out;
}

std::string help_markdown(const CLI::App& program, const ProgramDoc& doc) {
  return doc.preface + markdown_of_all(program, doc);
}

std::size_t terminal_width(std::size_t unknown) {
  std::size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr)
    width = std::strtoul(columns, nullptr, 10);
  winsize window{};
  if (width == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  return width == 0 ? unknown : std::clamp<std::size_t>(width, 60, 100);
}

}  // namespace fedge::apps
