// Scripts that complete a program's command line in a shell, and its manual page, from the same options as
// its help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/cli/program_doc.h"

namespace fedge::apps {

// `shell` is "bash", "zsh" or "fish".
std::string completion_script(const CLI::App& program, const ProgramDoc& doc, const std::string& shell);
// Manual page PROGRAM(1) with all commands, in roff.
std::string man_page(const CLI::App& program, const ProgramDoc& doc);

}  // namespace fedge::apps
