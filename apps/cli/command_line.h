// Parses every program's command line: help, version, errors that suggest the nearest valid word.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/cli/program_doc.h"
#include "core/result.h"

namespace fedge::apps {

// Parses the command line after all commands and options have been added. Returns the exit code if the
// program must end: after --help, --version, --help-markdown (its section of docs/reference/command-line.md),
// --help-man (its manual page), --completion SHELL, or a wrong command line. An option that may be repeated
// takes one value each time.
std::optional<int> parse_command_line(CLI::App& app, const ProgramDoc& doc, int argc, char** argv);

// Checks that every example of the program parses; the error names the first that does not.
Result<void> check_examples(CLI::App& app, const ProgramDoc& doc);

}  // namespace fedge::apps
