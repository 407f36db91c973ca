#include <cctype>
#include <optional>
#include <regex>

#include "tests/tidy/rules.h"
#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

struct Declared {
  std::string name;
  std::string meaning;      // a function's parameter types, the type that an alias stands for, else empty
  bool repeatable = false;  // may be declared twice with the same meaning
};

// Returns the types of a parameter list without the parameters' names. Only the first line counts.
std::string types_of(const std::string& parameters) {
  static const std::regex name("[ ]+[A-Za-z_]\\w*(?=,|$)");
  return std::regex_replace(parameters.substr(0, parameters.find(')')), name, "");
}

// Returns what a line at the left margin declares. The caller has blanked comments and literals.
std::optional<Declared> declared_by(const std::string& line) {
  static const std::regex alias("using (\\w+) = (.*)");
  static const std::regex type("(?:class|struct|union|enum|enum class) (\\w+)[^;]*");
  static const std::regex other("[\\w:<>,*& ]*[*& ](\\w+)([({=\\[].*| = .*)");
  std::smatch match;
  if (line.starts_with("namespace ")) return std::nullopt;
  if (std::regex_match(line, match, alias)) return Declared{match[1], match[2], true};
  if (std::regex_match(line, match, type)) return Declared{match[1], "", false};
  if (!std::regex_match(line, match, other)) return std::nullopt;
  const std::string rest = match[2];
  if (rest[0] != '(') return Declared{match[1], "", false};
  return Declared{match[1], "(" + types_of(rest.substr(1)), false};
}

// Returns the folder whose sources one target compiles: a room, or a room's unit or property tests; "" for
// other paths.
std::string target_of(const std::string& path) {
  for (const Room& room : rooms()) {
    const std::string name(room.name);
    if (name == "apps") continue;  // it contains several programs
    for (const std::string& folder : {name, "tests/unit/" + name, "tests/property/" + name})
      if (path.starts_with(folder + "/")) return folder;
  }
  return "";
}

}  // namespace

void UnnamedNames::learn(const std::string& path, std::string_view source) {
  const std::string target = path.ends_with(".cc") ? target_of(path) : "";
  if (target.empty()) return;
  const std::string blank = without_comments(source, true);
  const auto lines = split_lines(source);
  const auto declarations = split_lines(blank);
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("namespace {")) inside = true;
    if (lines[i].starts_with("}  // namespace")) inside = false;
    if (!inside || declarations[i].empty() ||
        std::isalpha(static_cast<unsigned char>(declarations[i][0])) == 0)
      continue;
    const auto declared = declared_by(std::string(declarations[i]));
    if (!declared) continue;
    auto& places = places_[target + " " + declared->name];
    for (const Place& other : places) {
      if (other.file == path) continue;
      const bool same = other.meaning == declared->meaning;
      if (declared->repeatable ? same : !same && !other.meaning.empty() && !declared->meaning.empty())
        continue;
      findings_.push_back({path, i + 1,
                           "'" + declared->name + "' is in the unnamed namespace of " + other.file +
                               ", too: name them apart, since both may be compiled as one unit"});
      break;
    }
    places.push_back({path, declared->meaning});
  }
}

}  // namespace fedge::tidy
