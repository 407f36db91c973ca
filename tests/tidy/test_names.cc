// Checks the test names that documents quote: a name in code marks that begins like a test program's
// ("unit_core: ...") must be that of a test case in the program's folder.
#include <array>

#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

struct Kind {
  std::string_view prefix;  // of the test program's name
  std::string_view folder;
  bool by_room;  // one folder for each room
};
constexpr std::array<Kind, 4> kKinds = {{{"unit_", "tests/unit/", true},
                                         {"property_", "tests/property/", true},
                                         {"integration_", "tests/integration/", false},
                                         {"faults_", "tests/faults/", false}}};

// Maps "unit_core" to "tests/unit/core/"; returns "" for other names.
std::string folder_of(std::string_view program) {
  for (const Kind& kind : kKinds) {
    if (!program.starts_with(kind.prefix)) continue;
    if (program.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string_view::npos) return {};
    const std::string_view room = program.substr(kind.prefix.size());
    return std::string(kind.folder) + (kind.by_room ? std::string(room) + "/" : "");
  }
  return {};
}

// Concatenates the adjacent string literals at the start of `code`.
std::string literals(std::string_view code) {
  std::string text;
  for (std::size_t at = 0;;) {
    at = code.find_first_not_of(" \n", at);
    if (at == std::string_view::npos || code[at] != '"') return text;
    for (++at; at < code.size() && code[at] != '"'; ++at) {
      if (code[at] == '\\') ++at;
      if (at < code.size()) text += code[at];
    }
    ++at;
  }
}

}  // namespace

void TestNames::learn(const std::string& path, std::string_view source) {
  constexpr std::string_view kCase = "TEST_CASE(";
  const std::string code = without_comments(source, false);
  for (std::size_t at = code.find(kCase); at != std::string::npos; at = code.find(kCase, at + 1))
    names_.emplace(literals(std::string_view(code).substr(at + kCase.size())), path);
}

bool TestNames::knows(std::string_view folder, std::string_view name) const {
  const auto [first, last] = names_.equal_range(std::string(name));
  for (auto it = first; it != last; ++it)
    if (it->second.starts_with(folder)) return true;
  return false;
}

std::vector<Finding> TestNames::check(const std::string& path, std::string_view text) const {
  std::vector<Finding> findings;
  const auto lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view rest = lines[i];
    for (std::size_t open = rest.find('`'); open != std::string_view::npos; open = rest.find('`')) {
      rest.remove_prefix(open + 1);
      const std::size_t close = rest.find('`');
      if (close == std::string_view::npos) break;
      const std::string_view span = rest.substr(0, close);
      rest.remove_prefix(close + 1);
      const std::size_t colon = span.find(": ");
      if (colon == std::string_view::npos) continue;
      const std::string folder = folder_of(span.substr(0, colon));
      if (!folder.empty() && !knows(folder, span.substr(colon + 2)))
        findings.push_back(
            {path, i + 1,
             "no test in " + folder + " is called \"" + std::string(span.substr(colon + 2)) + "\""});
    }
  }
  return findings;
}

}  // namespace fedge::tidy
