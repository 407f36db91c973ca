// Counts the methods that each class defines out of line, and the sources that define them.
#include <algorithm>
#include <cctype>
#include <optional>

#include "tests/tidy/rules.h"
#include "tests/tidy/tidy.h"

namespace fedge::tidy {
namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '~'; }

// Removes template arguments, so that "Table<A, B>::find" becomes "Table::find". An operator's symbol stays.
std::string without_arguments(std::string_view head) {
  std::string text;
  int depth = 0;
  for (const char c : head) {
    const bool symbol = text.ends_with("operator") || text.ends_with("operator<");
    if (c == '<' && !symbol) ++depth;
    if (depth == 0) text += c;
    if (c == '>' && !symbol && depth > 0) --depth;
  }
  return text;
}

struct Method {
  std::string type;  // "Outer::Inner"
  std::string name;
};

// Returns the method whose definition starts with this text, up to its body. `head` has no comments and no
// template arguments. Types begin with a capital letter, namespaces do not.
std::optional<Method> method_of(std::string_view head) {
  const std::size_t symbol = head.find("operator");
  std::size_t open = head.find('(', symbol == std::string_view::npos ? 0 : symbol);
  if (open == std::string_view::npos || head.substr(0, open).find('=') < symbol) return std::nullopt;
  const std::size_t end = std::min(open, symbol);
  std::size_t begin = end;
  while (begin > 0 && (is_name(head[begin - 1]) || head[begin - 1] == ':')) --begin;
  std::string_view chain = head.substr(begin, end - begin);
  const std::size_t last = chain.rfind("::");
  if (last == std::string_view::npos) return std::nullopt;
  const std::string name(symbol == std::string_view::npos ? chain.substr(last + 2) : "operator");
  std::string_view type = chain.substr(0, last);
  while (!type.empty() && std::isupper(static_cast<unsigned char>(type[0])) == 0) {
    const std::size_t colons = type.find("::");
    if (colons == std::string_view::npos) return std::nullopt;
    type.remove_prefix(colons + 2);
  }
  if (type.empty() || name.empty()) return std::nullopt;
  const std::size_t inner = type.rfind("::");
  const std::string_view own = inner == std::string_view::npos ? type : type.substr(inner + 2);
  if (name == own || name[0] == '~') return std::nullopt;
  return Method{std::string(type), name};
}

}  // namespace

void ClassSizes::learn(const std::string& path, std::string_view source) {
  if (!path.ends_with(".cc") && !path.ends_with(".h")) return;
  const std::string code = without_comments(source, true);
  const std::string room = path.substr(0, path.find('/'));
  for (std::size_t at = 0; at < code.size(); at = code.find('\n', at) + 1) {
    const std::size_t end = code.find_first_of("{;", at);
    if (end == std::string::npos) return;
    const bool starts = std::isalpha(static_cast<unsigned char>(code[at])) != 0;
    const bool more = code.compare(at, 8, "template") == 0;  // the next line is the definition's
    if (starts && !more && code[end] == '{')
      if (const auto method = method_of(without_arguments(std::string_view(code).substr(at, end - at)))) {
        Size& size = sizes_[room + " " + method->type];
        ++size.methods;
        size.sources.insert(path);
      }
    if (code.find('\n', at) == std::string::npos) return;
  }
}

std::vector<Finding> ClassSizes::findings() const {
  std::vector<Finding> findings;
  for (const auto& [name, size] : sizes_) {
    if (size.methods <= Limits::kMethods && size.sources.size() <= Limits::kSources) continue;
    const std::string type = name.substr(name.find(' ') + 1);
    const std::string& file = *size.sources.begin();
    findings.push_back({file, 0,
                        type + " has " + std::to_string(size.methods) + " methods out of line, in " +
                            std::to_string(size.sources.size()) + " sources; at most " +
                            std::to_string(Limits::kMethods) + " in " + std::to_string(Limits::kSources) +
                            ", then another class is hidden in it"});
  }
  return findings;
}

}  // namespace fedge::tidy
