// Checks of an option's value. Each describes the allowed values in the help, and in its error the correct
// ones.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fedge::apps {

// A number from `least` to `most`.
CLI::Validator between(double least, double most);
CLI::Validator at_least(double least);
// "192.0.2.7:7000": a host and a port.
CLI::Validator network_address();
// KEY=VALUE, as --set takes.
CLI::Validator assignment();
// One word of a closed list; the error for another word suggests the nearest.
CLI::Validator one_of(const std::vector<std::string>& words);

// "unknown command 'tokn'; did you mean 'token'?", or a list of all known words if none is near.
std::string unknown_word(const std::string& what, const std::string& word,
                         const std::vector<std::string>& known);

// Options that several commands have in common.
void add_format(CLI::App& command, std::string& format);
void add_log_level(CLI::App& command, std::string& level);
void add_log_format(CLI::App& command, std::string& format);
void add_assignments(CLI::App& command, std::vector<std::string>& assignments);
// --data NAME=PATH, repeatable.
void add_data(CLI::App& command, std::vector<std::string>& data);
void add_data_directory(CLI::App& command, std::string& directory);
void add_run_file(CLI::App& command, std::string& file);
// `what` is the sentence of the help. The default is the number of processors.
void add_threads(CLI::App& command, std::size_t& threads, const std::string& what);

}  // namespace fedge::apps
