// Renders a command's help as text for a terminal and as a section of docs/reference/command-line.md.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/program_doc.h"

namespace fedge::apps {

// "fedge token create".
std::string full_name(const CLI::App& command);
// "--count NUMBER", or the name of an argument.
std::string usage_of(const CLI::Option& option);
// "NUMBER"; empty for a flag.
std::string placeholder_of(const CLI::Option& option);

// No line is longer than `width`, unless a single word is.
std::string help_text(const CLI::App& command, const ProgramDoc& doc, std::size_t width);
// The program and all of its commands: options, defaults, examples.
std::string help_markdown(const CLI::App& program, const ProgramDoc& doc);
// $COLUMNS, or the width of the terminal at standard output, limited to 60 to 100; `unknown` without both.
std::size_t terminal_width(std::size_t unknown);
// Wraps the text into lines of at most `width`. The first line continues a line of `begin` characters, the
// others are indented. Ends with a line feed.
std::string wrapped(const std::string& text, std::size_t begin, std::size_t indent, std::size_t width);

// Conditions on the option's value, for example "one of table or json".
std::vector<std::string> checks_of(const CLI::Option& option);
// Usage and meaning of each argument and option, as the help shows them.
std::vector<std::pair<std::string, std::string>> option_rows(const CLI::App& command);

const CommandDoc* find_doc(const CLI::App& command, const ProgramDoc& doc);
// All subcommands, also those not on the command line.
std::vector<const CLI::App*> commands_of(const CLI::App& command);

}  // namespace fedge::apps
