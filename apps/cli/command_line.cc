#include "apps/cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "apps/cli/completion.h"
#include "apps/cli/help.h"
#include "apps/cli/validators.h"
#include "apps/common.h"

namespace fedge::apps {
namespace {

void take_one_value_each(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    take_one_value_each(*command);
}

// A command without documentation, or documentation without a command, is a bug in this program.
std::size_t check_documented(const CLI::App& command, const ProgramDoc& doc) {
  if (find_doc(command, doc) == nullptr) throw std::logic_error(full_name(command) + " is not documented");
  std::size_t count = 1;
  for (const CLI::App* part : commands_of(command)) count += check_documented(*part, doc);
  return count;
}

// The innermost command on the command line.
const CLI::App& given_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* level = &command; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options())
      if (!option->get_group().empty())  // else it is hidden
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (!level->get_fallthrough()) break;
  }
  return names;
}

std::string unexpected_word(const CLI::App& command, const std::string& word) {
  if (word.starts_with("-"))
    return unknown_word("option", word.substr(0, word.find('=')), option_names(command));
  std::vector<std::string> names;
  for (const CLI::App* part : commands_of(command)) names.push_back(part->get_name());
  return names.empty() ? "unexpected argument '" + word.substr(0, 80) + "'"
                       : unknown_word("command", word, names);
}

struct Complaint {
  const CLI::App* command;
  std::string text;
};

std::string missing_command(const CLI::App& command) {
  std::string names;
  for (const CLI::App* part : commands_of(command)) names += (names.empty() ? "" : ", ") + part->get_name();
  return "a command is missing; expected one of " + names;
}

// The option of the command itself, or of a command around it that takes the option too.
const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool outside = option == nullptr && command.get_fallthrough() && command.get_parent() != nullptr;
  return outside ? find_option(*command.get_parent(), name) : option;
}

std::string wrong_count(const CLI::Option& option) {
  const std::size_t given = option.count();
  if (given < 2) return option.get_name() + " needs a value: " + placeholder_of(option);
  return option.get_name() + " is given " + (given == 2 ? "twice" : std::to_string(given) + " times") +
         "; give it once";
}

// CLI11 puts the option's name in front of ": " or in the middle of its sentence.
std::string reworded(const CLI::ParseError& error, const CLI::App& command) {
  const std::string text = error.what();
  if (error.get_name() == "RequiredError") {
    if (text.starts_with("A subcommand")) return missing_command(command);
    const std::string name = text.substr(0, text.find(' '));
    const CLI::Option* option = command.get_option_no_throw(name);
    return (option == nullptr ? name : usage_of(*option)) + " is missing";
  }
  if (error.get_name() == "ArgumentMismatch") {
    const std::string name = text.substr(0, text.find(':'));
    const CLI::Option* option = find_option(command, name);
    if (option != nullptr) return wrong_count(*option);
  }
  if (error.get_name() == "ConversionError" && text.starts_with("Could not convert: ")) {
    const std::string rest = text.substr(std::string_view("Could not convert: ").size());
    const std::size_t at = rest.find(" = ");
    if (at != std::string::npos)
      return rest.substr(0, at) + ": '" + rest.substr(at + 3) + "' is not a valid number";
  }
  constexpr std::string_view kNotInFile = "INI was not able to parse ";
  if (error.get_name() == "ConfigError" && text.starts_with(kNotInFile))
    return "--config: the file has \"" + text.substr(kNotInFile.size()) + "\", which is no option";
  if (error.get_name() == "FileError")
    return "--config: " + text.substr(0, text.find(" was not")) + " cannot be read";
  if (error.get_name() == "ExcludesError")
    return "use only one of " + text.substr(0, text.find(' ')) + " and " + text.substr(text.rfind(' ') + 1);
  return text;
}

// The command that an unknown option follows: CLI11 gives an option that a command with fallthrough does not
// know to the command around it. An option that the inner command knows was before that command.
const CLI::App& misled_command(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-") || command.get_subcommands().empty()) return command;
  const CLI::App& inner = *command.get_subcommands().back();
  const bool known = inner.get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
  return inner.get_fallthrough() && !known ? misled_command(inner, word) : command;
}

Complaint complaint_about(const CLI::App& app, const CLI::ParseError& error) {
  for (const CLI::App* command = &app;; command = command->get_subcommands().back()) {
    const auto unexpected = command->remaining();
    if (!unexpected.empty()) {
      const CLI::App& misled = misled_command(*command, unexpected.front());
      return {&misled, unexpected_word(misled, unexpected.front())};
    }
    if (command->get_subcommands().empty()) return {command, reworded(error, *command)};
  }
}

int report_complaint(const CLI::App& app, const CLI::ParseError& error) {
  const auto [command, text] = complaint_about(app, error);
  return report_wrong_usage(full_name(*command), text,
                            commands_of(*command).empty() ? "options" : "commands");
}

// An example's arguments: without the program's name, redirections and other programs.
std::string arguments_of(const std::string& example) {
  const std::size_t begin = example.find(' ');
  if (begin == std::string::npos) return "";
  return example.substr(begin, example.find_first_of("<>|", begin) - begin);
}

}  // namespace

Result<void> check_examples(CLI::App& app, const ProgramDoc& doc) {
  for (const CommandDoc& command : doc.commands)
    for (const Example& example : command.examples) {
      const std::string begin = doc.program + (command.command.empty() ? "" : " " + command.command);
      const std::string wrong = "the example \"" + example.command + "\" of " + begin + " is wrong: ";
      if (!(example.command + " ").starts_with(begin + " "))
        return invalid(wrong + "it is not of this command");
      try {
        app.parse(arguments_of(example.command), false);
      } catch (const CLI::ParseError& error) {
        return invalid(wrong + complaint_about(app, error).text);
      }
    }
  return {};
}

std::optional<int> parse_command_line(CLI::App& app, const ProgramDoc& doc, int argc, char** argv) {
  take_one_value_each(app);
  if (check_documented(app, doc) != doc.commands.size())
    throw std::logic_error(doc.program + ": a command is documented that does not exist");
  if (argc == 2 && std::string_view(argv[1]) == "--help-markdown") {
    if (const auto right = check_examples(app, doc); !right)
      return report_failure(doc.program, right.error());
    std::printf("%s", help_markdown(app, doc).c_str());
    return kOk;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--completion") {
    const std::string shell = argv[2];
    if (shell != "bash" && shell != "zsh" && shell != "fish")
      return report_wrong_usage(doc.program,
                                "--completion: " + unknown_word("value", shell, {"bash", "zsh", "fish"}));
    std::printf("%s", completion_script(app, doc, shell).c_str());
    return kOk;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--help-man") {
    std::printf("%s", man_page(app, doc).c_str());
    return kOk;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", help_text(given_command(app), doc, terminal_width(80)).c_str());
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return kOk;
  } catch (const CLI::ParseError& error) {
    return report_complaint(app, error);
  }
  return std::nullopt;
}

}  // namespace fedge::apps
