// The command lines of all programs: help, examples, suggestions, and the generated reference page.
#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "apps/cli/command_line.h"
#include "core/platform/files.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using fedge::test::Outcome;

namespace {

const std::vector<std::string> kPrograms = {"fedge", "fedge-coordinator", "fedge-client", "fedge-sim",
                                            "fedge-lab"};

std::string pages_of_all_programs() {
  std::string pages;
  for (const std::string& program : kPrograms) {
    const Outcome page = fedge::test::run(program + " --help-markdown");
    REQUIRE_MESSAGE(page.code == 0, page.output);
    pages += page.output;
  }
  return pages;
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Every program and command, as in the page's headings.
std::vector<std::string> all_commands() {
  std::vector<std::string> commands;
  for (const std::string& line : lines_in(pages_of_all_programs()))
    if (line.starts_with("## `") || line.starts_with("### `")) {
      const std::size_t begin = line.find('`') + 1;
      commands.push_back(line.substr(begin, line.rfind('`') - begin));
    }
  return commands;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("command line: the reference page is what the programs print, whose examples all parse") {
  const auto page = fedge::read_file(FEDGE_SOURCE_DIR "/docs/reference/command-line.md", 1 << 20);
  REQUIRE(page);
  CHECK_MESSAGE(pages_of_all_programs() == *page,
                "write docs/reference/command-line.md again: its first lines say how");
}

TEST_CASE("command line: a wrong example is found") {
  CLI::App app("", "tool");
  auto* copy = app.add_subcommand("copy");
  std::string file;
  copy->add_option("--from", file)->required();
  const auto verdict = [&](const std::string& example) {
    const fedge::apps::ProgramDoc doc{"tool", {{"copy", "", "Copy", {{"Copy a file", example}}}}};
    const auto right = fedge::apps::check_examples(app, doc);
    return right ? std::string() : right.error().message;
  };
  CHECK(verdict("tool copy --from a < b").empty());
  CHECK(verdict("tool copy --form a") ==
        "the example \"tool copy --form a\" of tool copy is wrong: unknown option "
        "'--form'; did you mean '--from'?");
  CHECK(verdict("tool copy").ends_with("--from TEXT is missing"));
  CHECK(verdict("tool move --from a").ends_with("it is not of this command"));
}

TEST_CASE("command line: help of every command fits into 80 and 100 columns and has examples") {
  const auto commands = all_commands();
  CHECK(commands.size() > 50);
  for (const char* columns : {"80", "100"}) {
    REQUIRE(::setenv("COLUMNS", columns, 1) == 0);
    for (const std::string& command : commands) {
      const Outcome help = fedge::test::run(command + " --help");
      CHECK(help.code == 0);
      // `fedge-sim coordinator` shows the help of fedge-coordinator, `fedge-sim client` that of fedge-client.
      const bool daemon = command == "fedge-sim coordinator" || command == "fedge-sim client";
      const std::string shown = daemon ? "fedge-" + command.substr(command.find(' ') + 1) : command;
      CHECK(help.output.find("\nUsage: " + shown) != std::string::npos);
      const bool group = help.output.find("COMMAND --help'") != std::string::npos;
      CHECK_MESSAGE((group || help.output.find("\nExamples:\n") != std::string::npos), command);
      for (const std::string& line : lines_in(help.output))
        CHECK_MESSAGE(line.size() <= std::strtoul(columns, nullptr, 10), command << ": " << line);
    }
  }
  ::unsetenv("COLUMNS");
}

TEST_CASE("command line: a wrong command, option or value is answered with the nearest right one") {
  for (const auto& [command, answer] : std::vector<std::pair<std::string, std::string>>{
           {"fedge tokn", "fedge: unknown command 'tokn'; did you mean 'token'?"},
           {"fedge run sumbit", "fedge run: unknown command 'sumbit'; did you mean 'submit'?"},
           {"fedge token xyz", "fedge token: unknown command 'xyz'; expected one of create, ls, revoke"},
           {"fedge-sim run --sett run.rounds=1 a.toml",
            "fedge-sim run: unknown option '--sett'; did you mean '--set'?"},
           {"fedge-client status --state-dri=x",
            "fedge-client status: unknown option '--state-dri'; did you mean '--state-dir'?"},
           {"fedge-client --state-dir d run --only-secured",
            "fedge-client run: unknown option '--only-secured'; did you mean '--only-secure'?"},
           {"fedge-client --onec run", "fedge-client run: unknown option '--onec'; did you mean '--once'?"},
           {"fedge-client --once run",
            "fedge-client: unknown option '--once'; expected one of --help, --version, --state-dir, "
            "--log-level, "
            "--log-format, --config"},
           {"fedge reference coordinatr",
            "fedge reference: NAME: unknown key or section 'coordinatr'; did you mean 'coordinator'?"},
           {"fedge reference trainng",
            "fedge reference: NAME: unknown key or section 'trainng'; did you mean 'training'?"},
           {"fedge reference run.round",
            "fedge reference: NAME: unknown key or section 'run.round'; did you mean 'run.rounds'?"},
           {"fedge reference rounds",
            "fedge reference: NAME: unknown key or section 'rounds'; did you mean one of 'run.rounds', "
            "'training.schedule.rounds'?"},
           {"fedge reference training.learning_rate",
            "fedge reference: NAME: unknown key or section 'training.learning_rate'; did you mean "
            "'training.optimizer.learning_rate'?"},
           {"fedge reference clients",
            "fedge reference: NAME: unknown key or section 'clients'; did you mean one of "
            "'evaluation.clients', 'data.partition.clients', 'tracks.clients', "
            "'tracks.disagreement.clients'?"},
           {"fedge reference kind",
            "fedge reference: NAME: unknown key or section 'kind'; list all with: fedge reference"},
           {"fedge reference xyzzy",
            "fedge reference: NAME: unknown key or section 'xyzzy'; list all with: fedge reference"},
           {"fedge-lab attack crowdd",
            "fedge-lab attack: ATTACK: unknown value 'crowdd'; did you mean 'crowd'?"},
           {"fedge-sim overlay --nodes 64",
            "fedge-sim: 'overlay' is a command of fedge-lab; run 'fedge-lab overlay'"},
           {"fedge-sim attack crowd",
            "fedge-sim: 'attack' is a command of fedge-lab; run 'fedge-lab attack'"},
           {"fedge-sim swarm", "fedge-sim: 'swarm' is a command of fedge-lab; run 'fedge-lab swarm'"},
           {"fedge-sim gossip run.toml",
            "fedge-sim: 'gossip' is a command of fedge-lab; run 'fedge-lab gossip'"},
           {"fedge-coordinator run.toml", "fedge-coordinator: unexpected argument 'run.toml'"}}) {
    const Outcome outcome = fedge::test::run(command);
    CHECK(outcome.code == 2);
    CHECK(first_line(outcome.output) == answer);
  }
  const Outcome strategy = fedge::test::run("fedge strategies fedadamm");
  CHECK(first_line(strategy.output) ==
        "fedge: unknown strategy or part 'fedadamm'; did you mean 'fedadam'? (without NAME the command "
        "lists all)");
}

TEST_CASE("command line: an error names the option and what would be right") {
  for (const auto& [arguments, answer] : std::vector<std::pair<std::string, std::string>>{
           {"",
            "fedge token create: give --data-dir DIR on the coordinator's machine, or log in at a remote "
            "coordinator with 'fedge login'"},
           {"--data-dir", "fedge token create: --data-dir needs a value: DIR"},
           {"--data-dir x --count 0", "fedge token create: --count: must be 1 to 100000, not 0"},
           {"--data-dir x --count many", "fedge token create: --count: 'many' is not a number"},
           {"--data-dir x --count 1.5", "fedge token create: --count: '1.5' is not a valid number"},
           {"--data-dir x --no-address --address a:1",
            "fedge token create: use only one of --address and --no-address"},
           {"--data-dir x --count 2 --count 3", "fedge token create: --count is given twice; give it once"},
           {"--data-dir x --uses 2 --uses 3 --uses=4",
            "fedge token create: --uses is given 3 times; give it once"}}) {
    const Outcome outcome = fedge::test::run("fedge token create " + arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.output == answer + "\nRun 'fedge token create --help' for its options.\n");
  }
  CHECK(first_line(fedge::test::run("fedge audit").output) ==
        "fedge audit: a command is missing; expected one of ls, verify");
}

TEST_CASE("command line: a value in the wrong form is wrong usage") {
  const std::string form =
      " is not an address; write host:port, such as 192.0.2.7:7000 or [2001:db8::7]:7000";
  for (const auto& [command, answer] : std::vector<std::pair<std::string, std::string>>{
           {"fedge-coordinator --data-dir x --listen 7999", "fedge-coordinator: --listen: '7999'" + form},
           {"fedge-client run --bootstrap host", "fedge-client run: --bootstrap: 'host'" + form},
           {"fedge token create --data-dir x --address :1", "fedge token create: --address: ':1'" + form},
           {"fedge-client --state-dir a run --state-dir b",
            "fedge-client run: --state-dir is given twice; give it once"},
           {"fedge-sim run a.toml --set run.rounds",
            "fedge-sim run: --set: 'run.rounds' is not of the form KEY=VALUE"},
           {"fedge-sim run a.toml --set =5", "fedge-sim run: --set: '=5' is not of the form KEY=VALUE"}}) {
    const Outcome outcome = fedge::test::run(command);
    CHECK(outcome.code == 2);
    CHECK(first_line(outcome.output) == answer);
  }
}

TEST_CASE("command line: a model given as a run file is said not to be text") {
  const fedge::test::TemporaryDirectory directory;
  const std::string file = (directory.path() / "model.safetensors").string();
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{2} << 20}) {
    REQUIRE(fedge::write_file_atomic(file, std::string("\x50\0\0\0\0\0\0\0", 8) + std::string(bytes, ' ')));
    const Outcome outcome = fedge::test::run("fedge-sim run " + file);
    CHECK(outcome.code == 1);
    CHECK(outcome.output ==
          "fedge-sim: " + file + " is not a text file; run files and configuration files are TOML\n");
  }
}

TEST_CASE("command line: --check says whether a run file with its --set values is right, and runs nothing") {
  const std::string check = "fedge-sim run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --check";
  const Outcome right = fedge::test::run(check + " --out /nonexistent/out");
  CHECK(right.code == 0);
  CHECK(right.output == FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml: the run file is valid\n");
  const Outcome wrong = fedge::test::run(check + " --set run.rounds=0");
  CHECK(wrong.code == 1);
  CHECK(wrong.output.find("run.rounds: 0 is out of range") != std::string::npos);
}
