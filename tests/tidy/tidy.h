// tidy: a test of the house rules that a compiler does not check: permitted includes of each room, permitted
// calls of decision code, sizes of files and classes, READMEs. Walks a source tree and reports findings.
// Works on text: it knows comments and literals, but not C++.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fedge::tidy {

struct Finding {
  std::string file;      // relative to the root of the tree
  std::size_t line = 0;  // counted from 1; 0: the whole file or folder
  std::string message;
};

// Returns "core/rng.h:12: message", without the line if it is 0.
std::string to_string(const Finding& finding);

// Returns every finding in the tree, sorted by file and line. Skips hidden folders, `build` and symbolic
// links.
std::vector<Finding> check_tree(const std::filesystem::path& root);

// Returns one file's findings; `path`, relative to the root, decides which rules apply.
std::vector<Finding> check_file(const std::filesystem::path& root, const std::string& path,
                                std::string_view text);

// The names of all test cases. Checks whether documents quote them correctly: `unit_core: its name`.
class TestNames {
 public:
  void learn(const std::string& path, std::string_view source);
  std::vector<Finding> check(const std::string& path, std::string_view text) const;

 private:
  bool knows(std::string_view folder, std::string_view name) const;
  std::multimap<std::string, std::string> names_;  // test name to file
};

// Finds names that two sources of one target declare in unnamed namespaces: a unity build compiles both as
// one unit (cmake/room.cmake).
class UnnamedNames {
 public:
  void learn(const std::string& path, std::string_view source);
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  struct Place {
    std::string file;
    std::string meaning;  // a function's parameter types, or the type that an alias stands for
  };
  std::map<std::string, std::vector<Place>> places_;  // by target and name
  std::vector<Finding> findings_;
};

// Finds classes with too many methods out of line, or with methods in too many sources. Constructors and
// destructors do not count; overloads count each, and nested classes for themselves.
class ClassSizes {
 public:
  void learn(const std::string& path, std::string_view source);
  std::vector<Finding> findings() const;

 private:
  struct Size {
    std::size_t methods = 0;
    std::set<std::string> sources;
  };
  std::map<std::string, Size> sizes_;  // by room and class
};

// --- building blocks, exposed for their tests ---

// Blanks out comments and, if asked, the contents of literals; line numbers stay the same.
std::string without_comments(std::string_view source, bool blank_literals);
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace fedge::tidy
