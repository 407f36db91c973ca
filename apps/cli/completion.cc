#include "apps/cli/completion.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/help.h"

namespace fedge::apps {
namespace {

// Takes says which values an option or an argument has.
enum class Takes { kNothing, kWord, kFile, kChoice };

struct CompletedOption {
  std::vector<std::string> names;  // with their dashes
  Takes takes = Takes::kNothing;
  std::vector<std::string> choices;
  std::string meaning;
};

struct CompletedCommand {
  std::string path;  // "fedge client ls"
  std::string summary;
  std::vector<std::string> parts;
  std::vector<CompletedOption> options;
  bool takes_files = false;  // as arguments
};

constexpr std::string_view kOneOf = "one of ";

// Returns the words of "one of table or json".
std::vector<std::string> choices_of(const CLI::Option& option) {
  for (const std::string& check : checks_of(option)) {
    if (!check.starts_with(kOneOf)) continue;
    std::vector<std::string> words;
    for (std::size_t begin = kOneOf.size(); begin < check.size();) {
      const std::size_t end = std::min(check.find(' ', begin), check.size());
      std::string word = check.substr(begin, end - begin);
      if (word.ends_with(',')) word.pop_back();
      if (word != "or") words.push_back(std::move(word));
      begin = end + 1;
    }
    return words;
  }
  return {};
}

Takes kind_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return Takes::kNothing;
  if (!choices_of(option).empty()) return Takes::kChoice;
  const std::string name = option.get_positional() ? option.get_name(true) : placeholder_of(option);
  for (const char* file : {"FILE", "DIR", "PATH", "CORPUS"})
    if (name.find(file) != std::string::npos && name.find('=') == std::string::npos) return Takes::kFile;
  return Takes::kWord;
}

// The description up to its first end of a sentence or default.
std::string short_meaning(const CLI::Option& option) {
  const std::string text = option.get_description();
  return text.substr(0, std::min({text.find(';'), text.find(". "), text.find('\n'), text.size()}));
}

void add_options_of(const CLI::App& command, CompletedCommand& completed) {
  for (const CLI::Option* option : command.get_options()) {
    const Takes takes = kind_of(*option);
    if (option->get_positional()) {
      completed.takes_files = completed.takes_files || takes == Takes::kFile;
      continue;
    }
    if (option->get_group().empty()) continue;  // hidden
    CompletedOption one{{}, takes, choices_of(*option), short_meaning(*option)};
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    completed.options.push_back(std::move(one));
  }
  if (command.get_fallthrough() && command.get_parent() != nullptr) {
    CompletedCommand outer;
    add_options_of(*command.get_parent(), outer);
    for (CompletedOption& option : outer.options)
      if (std::ranges::find(completed.options, option.names, &CompletedOption::names) ==
          completed.options.end())
        completed.options.push_back(std::move(option));
  }
}

void collect(const CLI::App& command, const ProgramDoc& doc, std::vector<CompletedCommand>& all) {
  CompletedCommand completed{.path = full_name(command), .summary = find_doc(command, doc)->summary};
  for (const CLI::App* part : commands_of(command)) completed.parts.push_back(part->get_name());
  add_options_of(command, completed);
  all.push_back(std::move(completed));
  for (const CLI::App* part : commands_of(command)) collect(*part, doc, all);
}

std::string words_of(const CompletedCommand& command) {
  std::string words;
  for (const std::string& part : command.parts) words += " " + part;
  for (const CompletedOption& option : command.options)
    for (const std::string& name : option.names) words += " " + name;
  return words.empty() ? words : words.substr(1);
}

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string function_of(const std::string& program) {
  std::string name = "_" + program;
  std::ranges::replace(name, '-', '_');
  return name;
}

// 'a'|'b'|'c', the paths of all commands but the program.
std::string paths_of(const std::vector<CompletedCommand>& all) {
  std::string text;
  for (std::size_t i = 1; i < all.size(); ++i) text += (text.empty() ? "'" : "|'") + all[i].path + "'";
  return text.empty() ? "''" : text;
}

struct Dialect {
  const char* open;                   // of a case
  std::string (*words)(std::string);  // offers these words
  const char* files;                  // offers files
};

// The two case statements that bash and zsh have in common.
std::string cases(const std::vector<CompletedCommand>& all, const Dialect& dialect, const std::string& before,
                  const std::string& files_too) {
  std::string text = "  case \"" + before + "\" in\n";
  for (const CompletedCommand& command : all)
    for (const CompletedOption& option : command.options) {
      if (option.takes == Takes::kNothing) continue;
      std::string pattern;
      for (const std::string& name : option.names)
        pattern += (pattern.empty() ? "'" : "|'") + command.path + " " + name + "'";
      text += std::string("    ") + dialect.open + pattern + ")";
      if (option.takes == Takes::kChoice)
        text += " " + dialect.words("'" + spaced(option.choices) + "'") + ";";
      if (option.takes == Takes::kFile) text += std::string(" ") + dialect.files + ";";
      text += " return ;;\n";
    }
  text += "  esac\n  case \"$at\" in\n";
  for (const CompletedCommand& command : all)
    text += std::string("    ") + dialect.open + "'" + command.path + "') " +
            dialect.words("'" + words_of(command) + "'") + (command.takes_files ? "; " + files_too : "") +
            " ;;\n";
  return text + "  esac\n";
}

std::string bash_script(const std::string& program, const std::vector<CompletedCommand>& all) {
  const Dialect dialect{
      "", [](std::string words) { return "mapfile -t COMPREPLY < <(compgen -W " + words + " -- \"$cur\")"; },
      "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")"};
  const std::string name = function_of(program);
  return "# Completes the command line of " + program + " in bash. Printed by: " + program +
         " --completion bash\n" + name +
         "() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at='" + program +
         "' i\n  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n      " +
         paths_of(all) + ") at=\"$at ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n" +
         cases(all, dialect, "$at $prev",
               "[[ $cur == -* ]] || { compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < "
               "<(compgen -f "
               "-- \"$cur\"); }") +
         "}\ncomplete -F " + name + " " + program + "\n";
}

std::string zsh_script(const std::string& program, const std::vector<CompletedCommand>& all) {
  const Dialect dialect{
      "(", [](std::string words) { return "compadd -- ${=:-" + words.substr(1, words.size() - 2) + "}"; },
      "_files"};
  const std::string name = function_of(program);
  return "#compdef " + program + "\n# Completes the command line of " + program +
         " in zsh. Printed by: " + program + " --completion zsh\n" + name + "() {\n  local at='" + program +
         "' i\n  for ((i = 2; i < CURRENT; ++i)); do\n    case \"$at ${words[i]}\" in\n      (" +
         paths_of(all) + ") at=\"$at ${words[i]}\" ;;\n    esac\n  done\n" +
         cases(all, dialect, "$at ${words[CURRENT-1]}", "_files") +
         "}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  " + name + " \"$@\"\nelse\n  compdef " +
         name + " " + program + "\nfi\n";
}

std::string quoted_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_script(const std::string& program, const std::vector<CompletedCommand>& all) {
  const std::string at = "__" + function_of(program) + "_at";
  std::string text = "# Completes the command line of " + program + " in fish. Printed by: " + program +
                     " --completion fish\nfunction " + at + "\n  set -l at " + program +
                     "\n  for word in (commandline -opc)[2..-1]\n    switch \"$at $word\"\n      case";
  for (std::size_t i = 1; i < all.size(); ++i) text += " " + quoted_fish(all[i].path);
  if (all.size() == 1) text += " ''";
  text += "\n        set at \"$at $word\"\n    end\n  end\n  test \"$at\" = \"$argv\"\nend\n";
  for (const CompletedCommand& command : all) {
    const std::string begin = "complete -c " + program + " -n \"" + at + " " + command.path + "\"";
    if (!command.takes_files) text += begin + " -f\n";
    for (const std::string& part : command.parts)
      for (const CompletedCommand& other : all)
        if (other.path == command.path + " " + part)
          text += begin + " -a " + part + " -d " + quoted_fish(other.summary) + "\n";
    for (const CompletedOption& option : command.options) {
      text += begin;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.takes == Takes::kWord) text += " -x";
      if (option.takes == Takes::kFile) text += " -r -F";
      if (option.takes == Takes::kChoice) text += " -x -a " + quoted_fish(spaced(option.choices));
      text += " -d " + quoted_fish(option.meaning) + "\n";
    }
  }
  return text;
}

std::string roff(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    if (text[i] == '\\')
      escaped += "\\e";
    else if (text[i] == '-')
      escaped += "\\-";
    else
      escaped += text[i];
  }
  return escaped;
}

std::string roff_of(const CLI::App& command, const ProgramDoc& doc, bool program) {
  const CommandDoc& entry = *find_doc(command, doc);
  std::string text;
  if (!program) text += ".SS " + roff(full_name(command)) + "\n" + roff(entry.summary) + ".\n";
  for (const auto& [usage, meaning] : option_rows(command))
    text += ".TP\n\\fB" + roff(usage) + "\\fR\n" + roff(meaning) + ".\n";
  for (const std::string& note : entry.notes) text += ".PP\n" + roff(note) + "\n";
  for (const NamedList& list : entry.lists) {
    text += ".PP\n" + roff(list.title) + ":\n";
    for (const auto& [name, meaning] : list.entries)
      text += ".TP\n\\fB" + roff(name) + "\\fR\n" + roff(meaning) + ".\n";
  }
  for (const Example& example : entry.examples)
    text += ".PP\n" + roff(example.purpose) + ":\n.PP\n.nf\n.RS\n" + roff(example.command) + "\n.RE\n.fi\n";
  return text;
}

void add_roff(const CLI::App& command, const ProgramDoc& doc, std::string& text) {
  for (const CommandDoc& part : doc.commands)
    for (const CLI::App* known : commands_of(command)) {
      if (find_doc(*known, doc) != &part) continue;
      text += roff_of(*known, doc, false);
      add_roff(*known, doc, text);
    }
}

}  // namespace

std::string completion_script(const CLI::App& program, const ProgramDoc& doc, const std::string& shell) {
  std::vector<CompletedCommand> all;
  collect(program, doc, all);
  if (shell == "zsh") return zsh_script(doc.program, all);
  return shell == "fish" ? fish_script(doc.program, all) : bash_script(doc.program, all);
}

std::string man_page(const CLI::App& program, const ProgramDoc& doc) {
  std::string upper = doc.program;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  std::string text = ".TH " + roff(upper) + " 1 \"\" \"Fedge\" \"Fedge\"\n.SH NAME\n" + roff(doc.program) +
                     " \\- " + roff(find_doc(program, doc)->summary) + "\n.SH SYNOPSIS\n\\fB" +
                     roff(doc.program) + "\\fR [OPTIONS]" + (commands_of(program).empty() ? "" : " COMMAND") +
                     "\n.SH OPTIONS\n" + roff_of(program, doc, true);
  if (commands_of(program).empty()) return text;
  text += ".SH COMMANDS\n";
  add_roff(program, doc, text);
  return text;
}

}  // namespace fedge::apps
