// ProgramDoc: the help on a program's commands: summaries, groups, notes and examples. Options are
// documented where they are added. --help and docs/reference/command-line.md are generated from both.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fedge::apps {

struct Example {
  std::string purpose;  // "Create three join tokens"
  std::string command;  // one shell line
};

// A list of names and meanings, for example "Exit codes".
struct NamedList {
  std::string title;
  std::vector<std::pair<std::string, std::string>> entries;
};

struct CommandDoc {
  std::string command;  // "token create"; empty: the program itself
  std::string group;    // the heading of a top-level command in the program's help; empty for others
  std::string summary;
  std::vector<Example> examples;
  std::vector<std::string> notes = {};
  std::vector<NamedList> lists = {};
};

struct ProgramDoc {
  std::string program;
  std::vector<CommandDoc> commands;  // in the order of the help
  std::string preface = {};          // the beginning of docs/reference/command-line.md, for one program
};

// "custom-sim" of "/opt/bin/custom-sim"; `otherwise` if a program was started without its name.
std::string program_name(const char* const* argv, const std::string& otherwise);
// The same documentation for a program with another name, whose examples show that name.
ProgramDoc renamed(ProgramDoc doc, const std::string& program);

ProgramDoc fedge_doc();
ProgramDoc client_doc();
ProgramDoc coordinator_doc();
ProgramDoc sim_doc();
ProgramDoc lab_doc();

}  // namespace fedge::apps
